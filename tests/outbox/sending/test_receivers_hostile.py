"""Receivers that break the rules: each one ends as a named outcome, in time, in little memory."""

import asyncio

import pytest

from outbox.sending.oddities import LARGEST_HEAD, NOTES
from outbox.sending.outcome import Outcome
from outbox.sending.response import LARGEST_BODY
from tests.support.hostilities import (
    BROKEN,
    BROKEN_OFF,
    EMPTY,
    ENDLESS,
    GOOD_HEAD_BAD_BODY,
    OK,
    repeats,
    says,
    says_and_closes,
    says_and_resets,
)
from tests.support.receiver import Hostile, Script, Visit, hostile
from tests.support.senders import post, sender
from tests.support.waiting import HANG_SECONDS

MOST_READ = 256 * 1024
"""Bytes that a receiver can send before the disconnect: our limit plus both socket buffers."""


async def one(script: Script, timeout_s: float = HANG_SECONDS) -> tuple[Outcome, Hostile]:
    async with hostile(script) as there, sender() as client:
        outcome = await post(client, there.url, timeout_s=timeout_s)
        return outcome, there


@pytest.mark.parametrize("split", [False, True], ids=["at once", "in pieces"])
@pytest.mark.parametrize("name", GOOD_HEAD_BAD_BODY)
async def test_a_2xx_head_is_success_whatever_follows(name: str, split: bool) -> None:
    data = GOOD_HEAD_BAD_BODY[name]

    async def script(visit: Visit) -> None:
        await visit.request()
        for n in range(len(data)) if split else ():
            await visit.write(data[n : n + 1])
            await asyncio.sleep(0)
        if not split:
            await visit.write(data)
        await visit.gone()

    async with hostile(script) as there, sender() as client:
        outcome = await post(client, there.url)
        assert outcome.outcome == "success"
        if not split:
            # The rest must not be taken for the response to the next request.
            again = await post(client, there.url)
            assert (again.outcome, again.reused) == ("success", False)


async def test_the_valid_part_of_a_bad_body_is_recorded() -> None:
    outcome, _ = await one(says(GOOD_HEAD_BAD_BODY["a chunk, then a bad one"]))
    assert (outcome.response_body, outcome.truncated) == (b"abc", True)


@pytest.mark.parametrize("ending", [says_and_closes, says_and_resets])
async def test_cut_off_after_a_2xx_head(ending: object) -> None:
    assert callable(ending)
    outcome, _ = await one(ending(OK + b"Content-Length: 100\r\n\r\nhalf"))
    assert outcome.outcome == "success"
    assert outcome.truncated
    assert outcome.response_body == b"half"


async def test_the_deadline_ends_a_body_sooner_when_it_comes_sooner() -> None:
    outcome, _ = await one(repeats(OK + b"Content-Length: 100000\r\n\r\n", b".", 0.02), 0.3)
    assert (outcome.outcome, outcome.truncated) == ("success", True)


@pytest.mark.parametrize("name", ENDLESS)
async def test_endless_bodies_are_read_no_further_than_needed(name: str) -> None:
    head, part = ENDLESS[name]
    async with hostile(repeats(head, part)) as there, sender() as client:
        outcome = await post(client, there.url)
        await there.ended.wait()
    assert (outcome.outcome, outcome.truncated) == ("success", True)
    assert len(outcome.response_body) == LARGEST_BODY
    assert there.written <= max(MOST_READ, 3 * len(part))


@pytest.mark.parametrize("size", [LARGEST_BODY - 1, LARGEST_BODY, LARGEST_BODY + 1])
async def test_a_body_at_the_limit(size: int) -> None:
    head = f"Content-Length: {size}\r\n\r\n".encode()
    async with hostile(says(OK + head + b"x" * size)) as there, sender() as client:
        outcome = await post(client, there.url)
        again = await post(client, there.url)
    assert len(outcome.response_body) == min(size, LARGEST_BODY)
    assert outcome.truncated == (size > LARGEST_BODY)
    # A connection with unread data is not used again.
    assert again.outcome == "success"


@pytest.mark.parametrize("name", [*BROKEN, *BROKEN_OFF])
async def test_a_response_without_an_end_is_judged_by_its_status_line(name: str) -> None:
    script = BROKEN.get(name) or BROKEN_OFF[name]
    async with hostile(script) as there, sender() as client:
        outcome = await post(client, there.url)
        await there.ended.wait()
    assert outcome.outcome == ("protocol_error" if name in BROKEN else "success")
    assert outcome.error
    assert len(outcome.error) < 100
    assert there.written <= MOST_READ + LARGEST_HEAD + 100_000
    assert there.visits == 1


@pytest.mark.parametrize("reset", [False, True])
async def test_closing_without_a_response_is_a_connect_error(reset: bool) -> None:
    async def leave(visit: Visit) -> None:
        if reset:
            visit.reset()

    async def leave_after_the_request(visit: Visit) -> None:
        await visit.request()
        if reset:
            visit.reset()

    for script in (leave, leave_after_the_request):
        outcome, there = await one(script)
        assert outcome.outcome == "connect_error"
        assert there.visits == 1, "a new connection is not tried twice"


def closing_when_idle(reset: bool) -> Script:
    """Respond to one request, and end the connection as the second one arrives."""

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(EMPTY)
        if visit.number == 1:
            await visit.request()
            if reset:
                visit.reset()
            return
        await visit.gone()

    return script


@pytest.mark.parametrize("reset", [False, True])
async def test_a_stale_connection_is_recognised(reset: bool) -> None:
    async with hostile(closing_when_idle(reset)) as there, sender() as client:
        assert (await post(client, there.url)).outcome == "success"
        outcome = await post(client, there.url)
        assert (outcome.outcome, outcome.stale) == ("connect_error", True)
        outcome = await post(client, there.url, fresh=True)
        assert (outcome.outcome, outcome.reused, outcome.stale) == ("success", False, False)
        assert there.visits == 2


async def test_a_408_on_a_reused_connection_is_stale() -> None:
    """Load balancers end idle connections so, and never read the request that crosses it."""

    async def script(visit: Visit) -> None:
        if visit.number == 1:
            await visit.request()
            await visit.write(EMPTY)
            await visit.head()
        await visit.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await visit.gone()

    async with hostile(script) as there, sender() as client:
        assert (await post(client, there.url)).outcome == "success"
        outcome = await post(client, there.url)
        assert (outcome.outcome, outcome.status, outcome.stale) == ("http_4xx", 408, True)
        assert outcome.error == NOTES["repeated"]
        for fresh in (True, False):
            outcome = await post(client, there.url, fresh=fresh)
            assert (outcome.status, outcome.reused, outcome.stale) == (408, False, False)


async def test_a_kept_connection_that_answered_a_byte_is_not_replaced() -> None:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(EMPTY)
        await visit.request()
        await visit.write(b"H")

    async with hostile(script) as there, sender() as client:
        assert (await post(client, there.url)).outcome == "success"
        assert (await post(client, there.url)).outcome == "protocol_error"
        assert there.visits == 1


async def test_an_unrequested_response_is_not_used_for_the_next_request() -> None:
    spoke = asyncio.Event()

    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(EMPTY)
        if visit.number == 1:
            await spoke.wait()
            await visit.write(b"HTTP/1.1 500 Planted\r\nContent-Length: 0\r\n\r\n")
        await visit.gone()

    async with hostile(script) as there, sender() as client:
        assert (await post(client, there.url)).outcome == "success"
        spoke.set()
        await there.ended.wait()
        outcome = await post(client, there.url)
        assert (outcome.outcome, outcome.reused) == ("success", False)


async def test_headers_in_no_known_encoding_are_still_text() -> None:
    outcome, _ = await one(says(OK + b"X-Raw: \xff\xfe\xe9\r\nContent-Length: 0\r\n\r\n"))
    assert outcome.outcome == "success"
    value = dict(outcome.response_headers)["X-Raw"]
    assert value.encode("utf-8")


@pytest.mark.slow
async def test_a_sender_survives_all_of_them() -> None:
    async with sender() as client, hostile(says(EMPTY)) as good:
        for script in BROKEN.values():
            async with hostile(script) as there:
                await post(client, there.url)
            assert (await post(client, good.url)).outcome == "success"

"""POST to a well-behaved receiver: requests, timings and refusals."""

import asyncio
import json
import time

import pytest
from aiohttp import web
from gidgethub import sansio
from standardwebhooks import Webhook

from outbox.events.body import encode
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.lookups import LookupFailed
from outbox.sending.request import Request, compose, new_secret
from outbox.sending.send import Sender
from outbox.sending.urls import REFUSED_ADDRESS
from tests.support.process import free_port
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import BODY, HEADERS, LOOPBACK, post, sender

SECRET = new_secret(b"\x07" * 32)


def answers(status: int, **headers: str):  # type: ignore[no-untyped-def] # its type is Answer
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, text=f"said {status}")

    return answer


async def test_a_composed_delivery_verifies_at_the_other_end() -> None:
    body = encode({"event": "contact.created", "timestamp": 1_760_000_000, "data": {"name": "Zoë"}})
    async with receiver(secret=SECRET) as there, sender() as client:
        request = Request(
            "0" * 24, "contact.created", 1_760_000_000, 1, 1, "event", f"{there.url}/h", body,
            (SECRET,), (("Authorization", "Bearer x"),),
        )  # fmt: skip
        wall = time.time_ns() // 1000
        headers = compose(request, service="Carteiro", now_wall=wall, span_id="")
        outcome = await client.send(request.url, headers, body, request.timeout_s)
        assert (outcome.outcome, outcome.status, outcome.error) == ("success", 200, None)
        [got] = there.requests
        assert got.body == body
        assert json.loads(got.body)["data"] == {"name": "Zoë"}
        length = ("Content-Length", str(len(body)))
        assert got.headers == [("Host", there.url.removeprefix("http://")), length, *headers]
        signed = dict(got.headers)
        sansio.validate_event(got.body, signature=signed["X-Webhook-Signature"], secret=SECRET)
        Webhook(SECRET).verify(got.body, signed)


async def test_a_wrong_signature_is_noticed_by_the_receiver() -> None:
    async with receiver(secret=SECRET) as there, sender() as client:
        request = Request("0" * 24, "contact.created", 0, 1, 1, "event", there.url, BODY, (SECRET,))
        headers = compose(request, service="Carteiro", now_wall=time.time_ns() // 1000, span_id="")
        headers[3] = ("X-Webhook-Signature", "sha256=" + "0" * 64)
        outcome = await client.send(there.url, headers, BODY, 5.0)
        assert (outcome.outcome, outcome.status) == ("http_4xx", 401)


async def test_path_and_query_arrive_as_they_were_typed() -> None:
    async with receiver() as there, sender() as client:
        await post(client, f"{there.url}/a%20b/%2F?x=1&y=%C3%A9&z")
        [got] = there.requests
        assert got.path == "/a%20b/%2F?x=1&y=%C3%A9&z"
        assert got.method == "POST"


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 5_000_000])
async def test_bodies_of_any_size_arrive_whole(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    async def take(visit: Visit) -> None:
        await visit.reply(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with hostile(take) as there, sender() as client:
        outcome = await post(client, there.url, body=body)
        assert outcome.outcome == "success"
        assert there.requests == [body]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (200, "success"), (201, "success"), (202, "success"), (204, "success"), (299, "success"),
        (300, "http_3xx"), (301, "http_3xx"), (302, "http_3xx"), (303, "http_3xx"),
        (304, "http_3xx"), (307, "http_3xx"), (308, "http_3xx"),
        (400, "http_4xx"), (401, "http_4xx"), (404, "http_4xx"), (410, "http_4xx"),
        (422, "http_4xx"), (429, "throttled"),
        (500, "http_5xx"), (501, "http_5xx"), (502, "throttled"), (503, "throttled"),
        (504, "throttled"), (599, "http_5xx"), (600, "protocol_error"), (999, "protocol_error"),
    ],
)  # fmt: skip
async def test_statuses(status: int, name: str) -> None:
    async def say(visit: Visit) -> None:
        line = f"HTTP/1.1 {status} Because\r\nContent-Length: 0\r\n\r\n"
        await visit.reply(line.encode())

    async with hostile(say) as there, sender() as client:
        outcome = await post(client, there.url)
        assert (outcome.outcome, outcome.status) == (name, status)


async def test_the_answer_is_recorded() -> None:
    async with receiver(answer=answers(503, **{"Retry-After": "7", "X-Own": "é"})) as there:
        async with sender() as client:
            outcome = await post(client, there.url)
    assert outcome.retry_after == "7"
    assert outcome.response_body == b"said 503"
    assert ("Retry-After", "7") in outcome.response_headers
    assert ("X-Own", "é") in outcome.response_headers
    assert not outcome.truncated
    assert outcome.address == there.url.removeprefix("http://")


async def test_redirects_are_not_followed() -> None:
    async with receiver() as elsewhere, sender() as client:
        for status in (301, 302, 303, 307, 308):
            for location in (elsewhere.url, "gopher://127.0.0.1/", "/", "::bad::"):
                async with receiver(answer=answers(status, Location=location)) as there:
                    outcome = await post(client, there.url)
                    assert (outcome.outcome, outcome.status) == ("http_3xx", status)
                    assert len(there.requests) == 1
        assert elsewhere.requests == []


async def test_no_cookie_is_kept() -> None:
    async with receiver(answer=answers(200, **{"Set-Cookie": "a=b; Path=/"})) as there:
        async with sender() as client:
            await post(client, there.url)
            await post(client, there.url)
    assert all("cookie" not in {n.lower() for n, _ in got.headers} for got in there.requests)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as proxy, receiver() as there, sender() as client:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await post(client, there.url)).outcome == "success"
        assert proxy.requests == []


async def test_connections_are_kept_and_steps_are_timed() -> None:
    async with receiver() as there, sender() as client:
        url = there.url.replace("127.0.0.1", "localhost")
        first = await post(client, url)
        second = await post(client, url)
        assert there.requests[0].peer == there.requests[1].peer
    assert (first.reused, second.reused) == (False, True)
    assert first.dns_us is not None
    assert first.connect_us is not None
    assert first.tls_us is second.tls_us is None
    assert second.dns_us is second.connect_us is None
    for outcome in (first, second):
        assert outcome.first_byte_us is not None
        steps = (outcome.dns_us or 0, outcome.connect_us or 0, outcome.first_byte_us)
        assert 0 < sum(steps) <= outcome.total_us
        assert min(steps) >= 0


async def test_a_refused_connection_was_time_spent_connecting() -> None:
    async with sender() as client:
        outcome = await post(client, f"http://127.0.0.1:{free_port()}/")
        refused = await post(client, "http://10.0.0.1/")
    assert outcome.outcome == "connect_error"
    assert outcome.connect_us is not None
    assert 0 < outcome.connect_us <= outcome.total_us
    assert outcome.first_byte_us is None
    # No connection was attempted here.
    assert (refused.outcome, refused.connect_us) == ("blocked", None)


@pytest.mark.slow
async def test_concurrent_sends_have_a_connection_each() -> None:
    gate = asyncio.Event()

    async def wait(_: web.Request) -> web.Response:
        await gate.wait()
        return web.Response()

    async with receiver(answer=wait) as there, sender() as client:
        sending = [asyncio.create_task(post(client, there.url)) for _ in range(300)]
        await there.wait(300)
        gate.set()
        outcomes = await asyncio.gather(*sending)
    assert {outcome.outcome for outcome in outcomes} == {"success"}
    assert len({got.peer for got in there.requests}) == 300


@pytest.mark.parametrize(
    "headers",
    [
        [("X-A", "b\r\nX-Injected: 1")],
        [("X-A", "b\n")],
        [("X-A\r\n", "b")],
        [("X-A", "\0")],
        [("X-A", "b"), ("X-C", "\r")],
        [("X-A", "é")],
    ],
)
async def test_a_header_that_breaks_out_is_never_sent(headers: list[tuple[str, str]]) -> None:
    async with receiver() as there, sender() as client:
        with pytest.raises(ValueError):
            await client.send(there.url, headers, BODY, 5.0)
        assert there.requests == []


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://127.0.0.1:{port}/", REFUSED_ADDRESS),
        ("http://localhost:{port}/", REFUSED_ADDRESS),
        ("http://[::1]:{port}/", REFUSED_ADDRESS),
        ("http://[::ffff:127.0.0.1]:{port}/", REFUSED_ADDRESS),
        ("http://inside.example:{port}/", REFUSED_ADDRESS),
        ("http://mixed.example:{port}/", REFUSED_ADDRESS),
        ("http://2130706433:{port}/", "four decimal"),
        ("http://127.1:{port}/", "four decimal"),
        ("http://u@127.0.0.1:{port}/", "Authorization"),
        ("ftp://127.0.0.1:{port}/", "https://"),
    ],
)
async def test_nothing_reaches_a_refused_address(url: str, text: str) -> None:
    names = {"inside.example": ["127.0.0.1"], "mixed.example": ["1.1.1.1", "127.0.0.1"]}
    async with receiver() as there, sender(Rules(allow_http=True), look_up=names.get) as client:  # type: ignore[arg-type] # all names asked for are there
        outcome = await post(client, url.format(port=there.url.rpartition(":")[2]))
        assert outcome.outcome == "blocked"
        assert text in (outcome.error or "")
        assert (outcome.status, outcome.address) == (None, None)
        assert there.requests == []


async def test_without_the_guard_the_refused_addresses_would_be_reached() -> None:
    names = {"inside.example": ["127.0.0.1"]}
    async with receiver() as there, sender(LOOPBACK, look_up=names.get) as client:  # type: ignore[arg-type] # all names asked for are there
        outcome = await post(client, f"http://inside.example:{there.url.rpartition(':')[2]}/")
        assert outcome.outcome == "success"
        assert len(there.requests) == 1


async def test_the_dialled_address_is_judged_even_when_the_resolver_is_fooled() -> None:
    rules = Rules(allow_http=True, allow=(parse_place("127.0.0.1"),))
    names = {"home.example": ["127.0.0.1"]}
    async with receiver() as there, sender(rules, look_up=names.get) as client:  # type: ignore[arg-type] # all names asked for are there
        url = f"http://home.example:{there.url.rpartition(':')[2]}/"
        resolve = client._dialler._guard.resolve

        async def fooled(host: str, port: int, family: int):  # type: ignore[no-untyped-def] # as resolve
            found = await resolve(host, port)
            return [{**found[0], "host": "127.0.0.2"}]

        client._dialler._guard.resolve = fooled  # type: ignore[method-assign,assignment] # a resolver gone wrong
        outcome = await post(client, url)
        text = f"{REFUSED_ADDRESS}; allow it with the option --allow"
        assert (outcome.outcome, outcome.error) == ("blocked", text)
        assert there.requests == []


async def test_a_name_that_does_not_resolve() -> None:
    def fail(host: str) -> list[str]:
        raise LookupFailed("no such host")

    async with sender(look_up=fail) as client:
        outcome = await post(client, "http://gone.example:9000/")
    assert (outcome.outcome, outcome.error) == ("dns_error", "no such host")
    assert outcome.dns_us is not None
    assert outcome.connect_us is None


async def test_a_cancelled_send_aborts_its_connection() -> None:
    async def hang(visit: Visit) -> None:
        await visit.request()
        await visit.gone()

    async with hostile(hang) as there, sender() as client:
        sending = asyncio.create_task(post(client, there.url))
        while not there.requests:
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await asyncio.wait_for(there.ended.wait(), 5)


async def test_closing_ends_idle_connections() -> None:
    async def once(visit: Visit) -> None:
        await visit.reply(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with hostile(once) as there:
        async with sender() as client:
            assert (await post(client, there.url)).outcome == "success"
            assert not there.ended.is_set()
        await asyncio.wait_for(there.ended.wait(), 5)


async def test_remembered_urls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.send.MOST_ROUTES", 3)
    async with receiver() as there, sender() as client:
        for n in range(10):
            assert (await post(client, f"{there.url}/{n}")).outcome == "success"
        assert len(client._routes) == 3
        assert isinstance(client, Sender)
        assert HEADERS

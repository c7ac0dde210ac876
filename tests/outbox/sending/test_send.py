"""POST to a well-behaved receiver: requests, timings and refusals."""

import pytest
from aiohttp import web

from outbox.sending.addresses import Rules, parse_place
from outbox.sending.send import Sender
from outbox.sending.urls import REFUSED_ADDRESS
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import BODY, HEADERS, post, sender


def answers(status: int, **headers: str):  # type: ignore[no-untyped-def] # its type is Answer
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, text=f"said {status}")

    return answer


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
    assert all("cookie" not in {n.lower() for n in got.headers} for got in there.requests)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as proxy, receiver() as there, sender() as client:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await post(client, there.url)).outcome == "success"
        assert proxy.requests == []


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


async def test_remembered_urls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.send.MOST_ROUTES", 3)
    async with receiver() as there, sender() as client:
        for n in range(10):
            assert (await post(client, f"{there.url}/{n}")).outcome == "success"
        assert len(client._routes) == 3
        assert isinstance(client, Sender)
        assert HEADERS

"""Requests through the operator's egress proxy: the guard still judges the receiver's address."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace

import pytest
import trustme
from aiohttp import ClientTimeout

from outbox.sending.addresses import Rules, parse_place
from outbox.sending.proxies import Proxy, parse_proxy
from outbox.sending.request import Via
from outbox.sending.urls import REFUSED_ADDRESS
from tests.support.connect_proxy import ConnectProxy, connect_proxy
from tests.support.process import free_port
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import LOOPBACK, post, sender

OFFICE = Via(proxy="office")


def through(proxy: ConnectProxy | int, rules: Rules = LOOPBACK, password: str = "") -> Rules:
    """Return `rules` with the proxy `office`."""
    port = proxy if isinstance(proxy, int) else proxy.port
    credentials = f"ana:{password}@" if password else ""
    office = parse_proxy("office", f"http://{credentials}127.0.0.1:{port}")
    return Rules(rules.allow_http, rules.allow, proxies={"office": office})


async def test_the_proxy_gets_the_address_and_the_receiver_its_name() -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example").configure_cert(tls)
    names = {"hooks.example": ["127.0.0.1"]}
    async with (
        connect_proxy(wants="Basic YW5hOnAlQHNz") as proxy,
        receiver(tls=tls) as there,
        sender(through(proxy, password="p%25%40ss"), look_up=names.get, tls=trusting) as http,  # type: ignore[arg-type] # all names asked for are there
    ):
        port = there.url.rpartition(":")[2]
        first = await post(http, f"https://hooks.example:{port}/", via=OFFICE)
        second = await post(http, f"https://hooks.example:{port}/", via=OFFICE)
        direct = await post(http, f"https://hooks.example:{port}/")
        assert (first.outcome, first.error) == ("success", None)
        assert first.address == f"127.0.0.1:{port} via office"
        assert (second.reused, direct.reused) == (True, False), "no connection is shared"
        assert direct.address == f"127.0.0.1:{port}"
        assert proxy.places == [f"127.0.0.1:{port}"]
        assert {dict(got.headers)["Host"] for got in there.requests} == {f"hooks.example:{port}"}
        sent = [name.lower() for got in there.requests for name in got.headers]
        assert "proxy-authorization" not in sent


@pytest.mark.slow
async def test_an_address_that_hangs_behind_the_proxy_leaves_the_others_their_turn() -> None:
    names = {"two.example": ["::1", "127.0.0.1"]}
    async with (
        connect_proxy() as proxy, receiver() as there,
        sender(through(proxy), look_up=names.__getitem__) as http,
    ):  # fmt: skip
        proxy.hangs = "::1"
        port = _port(there.url)
        outcome = await post(http, f"http://two.example:{port}/", via=OFFICE)
        assert (outcome.outcome, proxy.places) == (
            "success", [f"[::1]:{port}", f"127.0.0.1:{port}"],
        )  # fmt: skip
        proxy.hangs = "1"
        late = await post(
            http, f"http://two.example:{port}/x", via=OFFICE, timeout_s=2.0, fresh=True
        )
    assert (late.outcome, late.error) == (
        "proxy_error",
        f"the proxy office did not answer in time (asked for [::1]:{port}, 127.0.0.1:{port})",
    )


async def test_a_proxy_that_resolves_gets_names_and_no_private_address() -> None:
    asked: list[str] = []
    strict = Rules(allow_http=True)
    async with connect_proxy() as proxy, receiver() as there:
        proxy.names = {"hooks.example": "127.0.0.1"}
        rules = replace(through(proxy, strict), proxies_resolve=True)
        port = _port(there.url)
        async with sender(rules, look_up=lambda name: asked.append(name) or []) as http:  # type: ignore[func-returns-value] # it notes the name
            sent = await post(http, f"http://hooks.example:{port}/", via=OFFICE)
            assert (sent.outcome, sent.address) == ("success", f"hooks.example:{port} via office")
            for host in ("127.0.0.1", "10.0.0.5", "[::1]", "localhost", "[::ffff:10.0.0.5]"):
                refused = await post(http, f"http://{host}:{port}/", via=OFFICE)
                assert refused.outcome == "blocked", host
            unknown = await post(http, f"http://gone.example:{port}/", via=OFFICE)
            assert unknown.error == "the proxy office could not connect to the receiver (502)"
            # Without the proxy names are looked up here.
            assert (await post(http, f"http://hooks.example:{port}/")).outcome == "dns_error"
        assert proxy.places == [f"hooks.example:{port}", f"gone.example:{port}"]
        assert asked == ["hooks.example"]


@pytest.mark.parametrize(
    "url",
    [
        "http://internal.example:8080/", "http://10.0.0.5:8080/", "http://169.254.169.254/",
        "http://[::1]:8080/", "http://mixed.example:8080/",
    ],
)  # fmt: skip
async def test_the_guard_refuses_a_private_receiver_behind_the_proxy(url: str) -> None:
    names = {
        "internal.example": ["10.0.0.5"], "mixed.example": ["93.184.215.14", "10.0.0.5"],
    }  # fmt: skip
    strict = Rules(allow_http=True)
    async with (
        connect_proxy() as proxy,
        sender(through(proxy, strict), look_up=names.get) as http,  # type: ignore[arg-type] # all names asked for are there
    ):
        outcome = await post(http, url, via=OFFICE)
        assert outcome.outcome == "blocked"
        assert (outcome.error or "").startswith(REFUSED_ADDRESS)
        assert proxy.heads == [], "the proxy was not asked"


async def test_without_its_proxy_a_request_is_not_sent_directly() -> None:
    async with receiver() as there, sender() as http:
        outcome = await post(http, there.url, via=OFFICE)
        assert (outcome.outcome, there.requests) == ("blocked", [])
        assert outcome.error == "the operator has no proxy office any more"


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (b"", "closed the connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "did not answer as an HTTP proxy"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n", "did not answer as an HTTP proxy"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000, "did not answer as an HTTP proxy"),
        (b"HTTP/1.1 407 No\r\n\r\n", "refused its credentials (407)"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "does not allow this receiver (403)"),
        (b"HTTP/1.1 503 No\r\n\r\n", "could not connect to the receiver (503)"),
        (b"HTTP/1.1 302 No\r\nLocation: http://10.0.0.5/\r\n\r\n", "refused the connection (302)"),
    ],
)
async def test_a_failure_of_the_proxy_is_told_as_such(says: bytes, error: str) -> None:
    async with connect_proxy(says) as proxy, receiver() as there, sender(through(proxy)) as http:
        outcome = await post(http, there.url, via=OFFICE)
        assert (outcome.outcome, there.requests) == ("proxy_error", [])
        assert (outcome.error or "").startswith(f"the proxy office {error}")
        assert outcome.address is None


@pytest.mark.slow
async def test_a_receiver_that_hangs_behind_the_proxy_is_no_failure_of_the_proxy() -> None:
    async def hang(visit: Visit) -> None:
        await asyncio.Event().wait()

    async with (
        connect_proxy() as proxy, hostile(hang) as there, sender(through(proxy)) as http,
    ):  # fmt: skip
        late = await post(http, there.url, via=OFFICE, timeout_s=0.3)
        assert late.outcome == "timeout"
        https = there.url.replace("http://", "https://")
        untold = await post(http, https, via=OFFICE, timeout_s=0.3)
        assert (untold.outcome, untold.error) == ("tls_error", "the TLS handshake timed out")


async def test_a_proxy_that_is_down_or_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiver() as there, sender(through(free_port())) as http:
        down = await post(http, there.url, via=OFFICE)
        assert (down.outcome, there.requests) == ("proxy_error", [])
        assert down.error == "the proxy office cannot be reached: connection refused"
    patience = ClientTimeout(connect=0.3, sock_connect=0.3)
    monkeypatch.setattr("outbox.sending.connect.CONNECT", patience)
    async with receiver(answer=None) as deaf, sender(through(_port(deaf.url))) as http:
        silent = await post(http, "http://127.0.0.1:9999/", via=OFFICE)
    assert silent.outcome == "proxy_error"


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("Office", "http://proxy:3128"),
        ("", "http://proxy:3128"),
        ("office", "https://proxy:3128"),
        ("office", "http://proxy"),
        ("office", "http://proxy:99999"),
        ("office", "http://proxy:3128/path"),
        ("office", "http://proxy:3128\r\nX: y"),
        ("office", "socks5://proxy:1080"),
    ],
)
def test_a_wrong_proxy_is_refused_without_its_password(name: str, url: str) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        parse_proxy(name, url.replace("://", "://ana:hunter2@"))
    assert "hunter2" not in str(raised.value)


def test_a_password_is_not_shown() -> None:
    proxy = parse_proxy("office", "http://ana:hunter2@proxy.internal:3128")
    assert proxy == Proxy("office", "proxy.internal", 3128, "Basic YW5hOmh1bnRlcjI=")
    assert "YW5h" not in repr(proxy)
    assert parse_place("10.0.0.0/8")

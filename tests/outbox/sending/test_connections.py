"""Which address a connection goes to, how long it is used, and what its TLS asks for."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import socket
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import trustme
from aiohttp import web

from outbox.clock import SystemClock
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.client_certificates import read
from outbox.sending.outcome import ASKED
from outbox.sending.request import DIRECT, Via
from outbox.sending.staggered import Connect, first_connected, interleaved
from tests.outbox.sending.test_client_certificates import pasted
from tests.support.process import free_port
from tests.support.receiver import Receiver, Visit, hostile, receiver
from tests.support.senders import LOOPBACK, post, sender
from tests.support.waiting import HANG_SECONDS, until


@pytest.mark.parametrize(
    ("found", "order"),
    [
        (["a:1", "a:2", "a:3", "1.1", "1.2"], ["a:1", "1.1", "a:2", "1.2", "a:3"]),
        (["1.1", "1.2", "1.3", "a:1"], ["1.1", "a:1", "1.2", "1.3"]),
        (["1.1", "1.1", "1.2"], ["1.1", "1.2"]), (["a:1"], ["a:1"]), ([], []),
    ],
)  # fmt: skip
def test_both_families_come_in_turns(found: list[str], order: list[str]) -> None:
    assert interleaved(found) == order


@asynccontextmanager
async def deaf(*addresses: str, port: int = 0) -> AsyncIterator[int]:
    """Listen at addresses that answer no connection, because their queue is full."""
    held: list[socket.socket] = []
    try:
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            there = socket.socket(family)
            held.append(there)
            there.bind((address, port))
            there.listen(0)
            port = there.getsockname()[1]
            for _ in range(2):
                one = socket.socket(family)
                held.append(one)
                one.setblocking(False)
                with suppress(BlockingIOError):
                    one.connect((address, port))
        yield port
    finally:
        for one in held:
            one.close()


async def test_a_family_that_hangs_leaves_the_other_its_turn() -> None:
    # More addresses of the first family than are tried.
    names = {"two.example": ["::1", *(f"2001:db8::{n}" for n in range(20)), "127.0.0.1"]}
    rules = Rules(allow_http=True, allow=(*LOOPBACK.allow, parse_place("2001:db8::/32")))
    async with receiver() as there, sender(rules, look_up=names.__getitem__) as http:
        port = int(there.url.rpartition(":")[2])
        async with deaf("::1", port=port):
            outcome = await post(http, f"http://two.example:{port}/")
        assert (outcome.outcome, outcome.address) == ("success", f"127.0.0.1:{port}")


@pytest.mark.slow
async def test_every_address_that_was_tried_is_named() -> None:
    port = free_port()
    names = {"down.example": ["::1", "127.0.0.1", "127.0.0.2"]}
    async with sender(look_up=names.__getitem__) as http:
        several = await post(http, f"http://down.example:{port}/")
        one = await post(http, f"http://127.0.0.1:{port}/")
        async with deaf("127.0.0.1", port=port):
            late = await post(http, f"http://down.example:{port}/", timeout_s=1.0)
    assert (several.outcome, one.outcome, late.outcome) == ("connect_error",) * 3
    assert one.error == f"connection refused (tried 127.0.0.1:{port})"
    for place in (f"[::1]:{port}", f"127.0.0.1:{port}", f"127.0.0.2:{port}"):
        assert place in (several.error or "")
        assert place in (late.error or "")
    assert (late.error or "").startswith("the connection timed out (tried ")
    assert f"127.0.0.1:{port}: no answer" in (late.error or "")


async def test_no_descriptor_is_closed_twice_after_a_receiver_hangs_up_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hang_up(visit: Visit) -> None:
        visit.reset()

    async def reset(
        addresses: Sequence[str], connect: Connect, delay: float
    ) -> tuple[str, socket.socket]:
        address, sock = await first_connected(addresses, connect, delay)
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        await until(lambda: poll.poll(0))
        return address, sock

    monkeypatch.setattr("outbox.sending.connect.first_connected", reset)
    async with hostile(hang_up) as there, sender() as http:
        outcome = await post(http, there.url.replace("http://", "https://"))
    assert outcome.outcome == "tls_error"
    # A socket that still seems open closes its number again, and is told of as unclosed.
    gc.collect()


async def test_an_address_whose_tls_fails_leaves_the_others_their_turn() -> None:
    authority = trustme.CA()

    async def hang_up(visit: Visit) -> None:
        visit.reset()

    names = {"hooks.example": ["127.0.0.2", "127.0.0.1"]}
    tls = serving(authority, "hooks.example")
    async with (
        receiver(tls=tls) as there,
        sender(look_up=names.__getitem__, tls=trusting(authority)) as http,
    ):
        port = int(there.url.rpartition(":")[2])
        url = f"https://hooks.example:{port}/"
        async with hostile(hang_up, host="127.0.0.2", port=port):
            outcome = await post(http, url)
        assert (outcome.outcome, outcome.address) == ("success", f"127.0.0.1:{port}")


class Clock(SystemClock):
    """A clock that only a test advances."""

    seconds = 1_000.0

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Moving:
    """A name whose address a test changes, with two receivers at one port."""

    old: Receiver
    new: Receiver
    address: str = "127.0.0.1"
    asked: int = 0

    @property
    def url(self) -> str:
        return f"http://moving.example:{self.old.url.rpartition(':')[2]}/"

    def __call__(self, name: str) -> list[str]:
        self.asked += 1
        return [self.address]


@asynccontextmanager
async def moving() -> AsyncIterator[Moving]:
    async with receiver() as old:
        port = int(old.url.rpartition(":")[2])
        async with receiver(host="127.0.0.2", port=port) as new:
            yield Moving(old, new)


@pytest.mark.parametrize("seconds", [60.0, 10.0])
async def test_a_name_that_moves_is_noticed_by_steady_traffic(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the old addresses would be used meanwhile.
    monkeypatch.setattr("outbox.sending.lookups.REFRESH_SECONDS", HANG_SECONDS)
    clock, rules = Clock(), replace(LOOPBACK, connection_seconds=seconds)
    async with moving() as name, sender(rules, look_up=name, clock=clock) as http:
        outcomes = [await post(http, name.url)]
        name.address = "127.0.0.2"
        while clock.seconds < 1_000.0 + 10 * seconds:
            clock.seconds += 1.0
            outcomes.append(await post(http, name.url))
    assert {one.outcome for one in outcomes} == {"success"}, "closing costs nobody a request"
    assert len(name.old.requests) == seconds, "one a second until the age"
    assert len(name.new.requests) == len(outcomes) - seconds
    # One look-up for each connection, and none for a request.
    assert name.asked == sum(not one.reused for one in outcomes) == 10 + 1


async def test_the_guard_judges_where_a_name_has_moved_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.sending.lookups.REFRESH_SECONDS", HANG_SECONDS)
    clock = Clock()
    async with moving() as name, sender(look_up=name, clock=clock) as http:
        assert (await post(http, name.url)).outcome == "success"
        name.address = "10.0.0.1"
        clock.seconds += 60.0
        assert (await post(http, name.url)).outcome == "blocked"
        assert len(name.old.requests) == 1


async def test_an_answer_in_use_for_long_shortens_the_age(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.sending.lookups.REFRESH_SECONDS", HANG_SECONDS)
    clock = Clock()
    async with moving() as name, sender(look_up=name, clock=clock) as http:
        await post(http, name.url, fresh=True)
        name.address = "127.0.0.2"
        clock.seconds += 29.0
        # By the address of 29 seconds ago, for the 31 that are left.
        assert (await post(http, name.url)).address == name.old.url.removeprefix("http://")
        clock.seconds += 31.0
        assert (await post(http, name.url)).address == name.new.url.removeprefix("http://")


async def test_a_request_in_flight_outlives_the_age_of_its_connection() -> None:
    clock, held = Clock(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        await held.wait()
        return web.Response()

    rules = replace(LOOPBACK, connection_seconds=1.0)
    async with receiver(answer=answer) as there, sender(rules, clock=clock) as http:
        sending = asyncio.create_task(post(http, there.url))
        await there.until(1)
        clock.seconds += 2.0
        held.set()
        assert (await sending).outcome == "success"
        again = await post(http, there.url)
        assert (again.outcome, again.reused) == ("success", False)


def serving(authority: trustme.CA, name: str = "127.0.0.1") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_an_authority_of_a_file_is_trusted_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, other = trustme.CA(), trustme.CA()
    file, others = tmp_path / "inner.pem", tmp_path / "others.pem"
    inner.cert_pem.write_to_path(str(file))
    other.cert_pem.write_to_path(str(others))
    monkeypatch.setenv("SSL_CERT_FILE", str(others))
    own = Via(read(pasted(inner.issue_cert("carteiro@client.example"))).pem)
    async with receiver(tls=serving(inner)) as one, receiver(tls=serving(other)) as two:
        async with sender(replace(LOOPBACK, ca_file=str(file))) as http:
            for url, via in ((one.url, DIRECT), (two.url, DIRECT), (one.url, own)):
                assert (await post(http, url, via=via)).outcome == "success"
            # A file that is away for a moment: the next delivery looks for it again.
            later = Via(read(pasted(inner.issue_cert("later@client.example"))).pem)
            away = file.rename(tmp_path / "away.pem")
            assert (await post(http, one.url, via=later)).outcome != "success"
            away.rename(file)
            assert (await post(http, one.url, via=later)).outcome == "success"
        async with sender() as http:
            refused = await post(http, one.url)
            assert (refused.outcome, len(one.requests)) == ("tls_error", 3)


@pytest.mark.slow
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_that_is_asked_for_is_told_as_such(
    version: ssl.TLSVersion,
) -> None:
    authority = trustme.CA()
    context = serving(authority)
    authority.configure_trust(context)
    context.minimum_version = context.maximum_version = version

    def refuse(server: socket.socket) -> None:
        # On a thread: a server on asyncio closes without the alert.
        plain, _ = server.accept()
        with context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False) as secure:
            with suppress(ssl.SSLError):
                secure.do_handshake()
            with suppress(OSError):
                while os.read(secure.fileno(), 4096):
                    pass

    for verify in (ssl.CERT_REQUIRED, ssl.CERT_OPTIONAL):
        context.verify_mode = verify
        trust = partial(trusting, authority)
        async with receiver(tls=context) as there, sender(trust=trust) as http:
            silent = await post(http, there.url)
            strange = Via(read(pasted(trustme.CA().issue_cert("a@b.example"))).pem)
            presented = await post(http, there.url, via=strange)
        if verify is ssl.CERT_OPTIONAL:
            assert silent.outcome == "success"
        elif version is ssl.TLSVersion.TLSv1_2:
            assert (silent.outcome, silent.error) == ("tls_error", ASKED)
        assert ASKED not in (presented.error or "")
    context.verify_mode = ssl.CERT_REQUIRED
    with socket.create_server(("127.0.0.1", 0)) as server:
        refusing = asyncio.create_task(asyncio.to_thread(refuse, server))
        async with sender(tls=trusting(authority)) as http:
            told = await post(http, f"https://127.0.0.1:{server.getsockname()[1]}/")
        await refusing
    assert told.outcome == "tls_error"
    assert (told.error or "").startswith(f"{ASKED} (TLS: ")


@pytest.mark.proof
async def test_a_slow_handshake_has_the_time_of_the_webhook() -> None:
    authority = trustme.CA()
    context = serving(authority)

    def answer(server: socket.socket) -> None:
        plain, _ = server.accept()
        time.sleep(6.0)
        with context.wrap_socket(plain, server_side=True) as secure:
            secure.recv(65_536)
            secure.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            secure.unwrap()

    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = asyncio.create_task(asyncio.to_thread(answer, server))
        async with sender(tls=trusting(authority)) as http:
            url = f"https://127.0.0.1:{server.getsockname()[1]}/"
            outcome = await post(http, url, timeout_s=30.0)
    with suppress(OSError):
        await answering
    assert outcome.outcome == "success"
    assert (outcome.tls_us or 0) > 5_500_000

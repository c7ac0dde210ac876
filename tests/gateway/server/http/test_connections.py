"""Slow, idle and too many clients, over plain sockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.server.config import Config, Limits
from gateway.server.http import bodies
from gateway.server.http.admission import PROBES
from gateway.server.http.inbound import Connection
from gateway.server.telemetry.metrics import METRICS
from outbox.database.transaction import Database
from tests.support.site import Site, serving
from tests.support.tables import in_turn
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HEAD = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
BODY = b"POST /api/auth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture
async def site(db: Database) -> AsyncIterator[Site]:
    async with serving(db) as site:
        yield site


@asynccontextmanager
async def connected(site: Site) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):  # the server may have cut it
            await writer.wait_closed()


def inbound(site: Site) -> Connection:
    """Return the one connection of a server."""
    assert site.runner.server is not None
    [found] = site.runner.server.connections
    assert isinstance(found, Connection)
    return found


def rejected(site: Site, reason: str) -> float:
    value = site.app[METRICS].registry.get_sample_value(
        "http_requests_rejected_total", {"surface": "api", "reason": reason}
    )
    return value or 0.0


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", b"GET /li", HEAD[:-2]])
async def test_a_head_that_does_not_come(db: Database, first: bytes) -> None:
    limits = Limits(header_seconds=0.001)
    async with serving(db, Config(limits=limits)) as site:
        async with connected(site) as (reader, writer):
            writer.write(first)
            assert b" 408 " in await reader.read()
        assert rejected(site, "slow") == 1


async def test_a_request_that_has_come_is_busy_up_to_its_response(site: Site) -> None:
    """A full server closes who is not, and would do the work of a request without an answer."""
    async with connected(site) as (reader, writer):
        writer.write(HEAD)
        await reader.readuntil(b"}")
        there = inbound(site)
        await until(lambda: not there.busy)
        there.data_received(HEAD.replace(b"livez", b"readyz"))
        busy = []
        answer = asyncio.ensure_future(reader.readuntil(b"}"))
        while not answer.done():
            busy.append(there.busy)
            await asyncio.sleep(0)
        assert busy[0]
        assert busy == sorted(busy, reverse=True)


@pytest.mark.slow
async def test_a_body_that_does_not_come(db: Database) -> None:
    async with serving(db, Config(limits=Limits(body_seconds=0.001))) as site:
        async with connected(site) as (reader, writer):
            writer.write(BODY + b" ")
            assert b" 408 " in await reader.readline()
        assert rejected(site, "slow") == 1


async def test_a_head_and_a_body_that_drip_have_no_more_time(site: Site) -> None:
    """On a used connection, and at the moments that the server would look at."""
    limits = Limits()
    async with connected(site) as (reader, writer):
        writer.write(HEAD)
        assert b" 200 " in await reader.readuntil(b"}")
        there = inbound(site)
        # Between requests only the keep-alive counts.
        await until(lambda: not there.busy)
        assert not there.overdue(there.idle_since + 9_999)
        assert not there.idle_past(there.idle_since + 60, 60)
        assert there.idle_past(there.idle_since + 60.1, 60)
        since = set()
        for size in (1, 2, 3):
            writer.write(BODY[size - 1 : size])
            await until(lambda size=size: there.head_bytes == size)  # type: ignore[misc]
            since.add(there.head_since)
        [began] = since
        assert began is not None
        assert not there.overdue(began + limits.header_seconds)
        assert there.overdue(began + limits.header_seconds + 0.1)
        writer.write(BODY[3:] + b"{")
        await until(lambda: there.busy)
        began = there.headed_at
        writer.write(b" ")
        await until(lambda: there._received == len(HEAD + BODY) + 2)
        assert not there.overdue(began + limits.body_seconds)
        assert there.overdue(began + limits.body_seconds + 0.1)


@pytest.mark.slow
async def test_a_client_that_does_not_read(db: Database) -> None:
    async with serving(db, Config(limits=Limits(body_seconds=0.1))) as site:
        async with connected(site) as (_, writer):
            transport = writer.transport
            assert isinstance(transport, asyncio.Transport)
            transport.pause_reading()
            requests = 0
            # Pipelined until nothing goes through any more: both sides' buffers are full.
            while not writer.transport.is_closing() and requests < 20_000:
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 10)
                requests += 10
                await asyncio.sleep(0)
            await until(lambda: rejected(site, "slow") > 0)
            writer.transport.abort()


NOT_A_PROBE = b"GET /api/me HTTP/1.1\r\nHost: a\r\n\r\n"
KEY_BODY = b'{"email":"a@example.com","password":"' + b"x" * 40_000


async def opened(site: Site, address: str, says: bytes = HEAD) -> Streams:
    """A connection from an address of loopback that has asked something, if anything."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port, local_addr=(address, 0))
    if says:
        writer.write(says)
        assert b" 200 " in await reader.readuntil(b"}")
    return reader, writer


async def test_one_address_gets_its_share_and_others_theirs(db: Database) -> None:
    limits = Limits(connections=4, connections_per_address=3)
    async with serving(db, Config(limits=limits)) as site:
        held = [await opened(site, "127.0.0.1") for _ in range(3)]
        async with connected(site) as (reader, writer):
            writer.write(NOT_A_PROBE)
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        held.append(await opened(site, "127.0.0.2"))
        assert site.runner.census() == {"active": 0, "idle": 4}
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        await until(lambda: not site.runner.census()["idle"])
        # What was held is free again.
        async with site.http.get("/livez") as answer:
            assert answer.status == 200


async def test_when_full_who_holds_most_loses_what_waited_longest(db: Database) -> None:
    limits = Limits(connections=4, connections_per_address=3)
    async with serving(db, Config(limits=limits)) as site:
        first, second, third = [await opened(site, "127.0.0.1", b"") for _ in range(3)]
        other = await opened(site, "127.0.0.2")
        # Asking again puts it behind the others.
        first[1].write(HEAD)
        await first[0].readuntil(b"}")
        newcomers = [await opened(site, f"127.0.0.{n}") for n in (3, 4)]
        for reader, writer in (second, third):
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
            writer.close()
        for reader, writer in (first, other, *newcomers):
            writer.write(HEAD)
            assert b" 200 " in await reader.readuntil(b"}")
            writer.close()


async def test_an_idle_connection_that_makes_room_is_told_nothing(db: Database) -> None:
    async with serving(db, Config(limits=Limits(connections=1))) as site:
        reader, writer = await opened(site, "127.0.0.1")
        newcomer = await opened(site, "127.0.0.2")
        await reader.read(1000)
        assert await reader.read() == b""
        for one in (writer, newcomer[1]):
            one.close()


async def test_a_body_of_somebody_unknown_makes_room_too(db: Database) -> None:
    async with serving(db, Config(limits=Limits(connections=1))) as site:
        reader, writer = await opened(site, "127.0.0.1", b"")
        writer.write(BODY + b"{")
        await until(lambda: site.app[METRICS].active["api"] == 1)
        newcomer = await opened(site, "127.0.0.2")
        assert b" 503 " in await reader.readline()
        for one in (writer, newcomer[1]):
            one.close()


async def test_probes_have_places_of_their_own(db: Database) -> None:
    limits = Limits(connections=2, connections_per_address=1)
    async with serving(db, Config(limits=limits)) as site:
        held = await opened(site, "127.0.0.1")
        for path in ("livez", "readyz", "metrics?name[]=x"):
            reader, writer = await opened(site, "127.0.0.1", b"")
            # In two parts: only then is it seen that the line is no other.
            writer.write(f"GET /{path} HTT".encode())
            await asyncio.sleep(0)
            writer.write(b"P/1.1\r\nHost: localhost\r\n\r\n" + NOT_A_PROBE)
            said = await reader.read()
            assert said.startswith(b"HTTP/1.1 200 OK")
            assert b"\r\nConnection: close\r\n" in said
            assert said.count(b"HTTP/1.1 ") == 1
            writer.close()
        for line in (b"GET /livezz HTTP/1.1\r\n", b"POST /livez HTTP/1.1\r\n", b"x" * 600,
                     b"GET /api/me HTTP/1.1\n"):  # fmt: skip
            reader, writer = await opened(site, "127.0.0.1", b"")
            writer.write(line)
            assert (await reader.read()).startswith(b"HTTP/1.1 503 "), line
            writer.close()
        held[1].close()


async def test_places_for_probes_are_for_the_latest(db: Database) -> None:
    async with serving(db, Config(limits=Limits(connections_per_address=1))) as site:
        held = [await opened(site, "127.0.0.1")]
        held += [await opened(site, "127.0.0.1", b"") for _ in range(PROBES + 20)]
        reader, writer = await opened(site, "127.0.0.1", b"")
        writer.write(HEAD)
        assert b" 200 " in await reader.readline()
        for _, one in (*held, (reader, writer)):
            one.close()


@pytest.mark.slow
async def test_keep_alive_shortens_as_places_run_out(db: Database) -> None:
    limits = Limits(connections=4, keep_alive_seconds=600)
    async with serving(db, Config(limits=limits)) as site:
        held = [await opened(site, "127.0.0.1") for _ in range(4)]
        await held[0][0].read(1000)
        # Long before ten minutes.
        assert await held[0][0].read() == b""
        for _, writer in held:
            writer.close()


@in_turn(
    ("head", "status"),
    [
        (b"".join(b"X%d: %s\r\n" % (n, b"x" * 7_000) for n in range(6)), 431),
        (b"X: " + b"x" * 17_000 + b"\r\n", 431),
        (b"".join(b"X%d: x\r\n" % n for n in range(140)), 431),
        (b"Transfer-Encoding: foo\r\n", 501),
        (b"Transfer-Encoding: chunked, gzip\r\n", 501),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 400),
        (b"".join(b"X%d: %s\r\n" % (n, b"x" * 7_000) for n in range(4)), 200),
    ],
)
async def test_heads(site: Site, head: bytes, status: int) -> None:
    line, end = b"GET /livez", b""
    if b"Encoding" in head:
        line, end = b"POST /api/auth/token", b"0\r\n\r\n"
    async with connected(site) as (reader, writer):
        writer.write(line + b" HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n" + end)
        assert int((await reader.readline())[9:12]) == status


@pytest.mark.parametrize(
    ("request_", "status", "said"),
    [
        (b"GET /api/contacts?search=" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 400,
         "The address is too long; send a shorter query, or several requests."),
        (b"GET /api/contacts HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n", 400,
         "The request is not valid HTTP."),
        (b"GET /api/contacts HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 17_000 + b"\r\n\r\n", 431,
         "The headers are too large or too many."),
        (b"GET /api/contacts HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n", 417,
         "The Expect header is not supported."),
        (b"GET /api/contacts HTTP/1.1\r\nHost: a\r\nExpect: 100-\xff\x80\r\n\r\n", 417,
         "The Expect header is not supported."),
    ],
)  # fmt: skip
async def test_a_refused_head_says_why(site: Site, request_: bytes, status: int, said: str) -> None:
    async with connected(site) as (reader, writer):
        writer.write(request_)
        assert int((await reader.readline())[9:12]) == status
        await reader.readuntil(b"\r\n\r\n")
        body = json.loads(await reader.readuntil(b"}"))
        assert (body["error"], body["code"]) == (said, "validation_error")
        assert "requestId" in body


async def test_a_key_that_is_no_text_is_unknown_to_each_door(site: Site) -> None:
    for door in (b"GET /api/contacts", b"POST /mcp"):
        async with connected(site) as (reader, writer):
            body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
            writer.write(
                door
                + b" HTTP/1.1\r\nHost: a\r\nX-API-Key: \xff\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            assert b" 401 " in await reader.readline(), door


async def test_a_head_that_does_not_end_is_too_large(site: Site) -> None:
    async with connected(site) as (reader, writer):
        writer.write(HEAD + b"GET / HTTP/1.1\r\n")
        await reader.readuntil(b"}")
        for n in range(6):
            writer.write(b"X%d: %s\r\n" % (n, b"x" * 7_000))
        assert b" 431 " in await reader.readline()
        assert rejected(site, "too_large") == 1


@pytest.mark.slow
async def test_requests_that_do_not_end_are_bounded_in_all(db: Database) -> None:
    """Of 400,000 bytes one address may hold the half; small requests are always taken."""
    limits = Limits(request_bytes=400_000, sign_in_per_minute=0)
    async with serving(db, Config(limits=limits)) as site:
        head = BODY.replace(b"100", b"60000")
        held = []
        for address in ("127.0.0.2",) + ("127.0.0.1",) * 5:
            reader, writer = await opened(site, address, b"")
            writer.write(head + KEY_BODY)
            held.append((reader, writer))
        refused = await asyncio.wait(
            [asyncio.create_task(reader.readline()) for reader, _ in held[1:]],
            return_when=asyncio.FIRST_COMPLETED, timeout=120,
        )  # fmt: skip
        said = [task.result() for task in refused[0]]
        assert said
        assert all(b" 503 " in line for line in said)
        assert not held[0][0].at_eof()
        async with site.http.get("/livez") as answer:
            assert answer.status == 200
        for task in refused[1]:
            task.cancel()
        for _, writer in held:
            writer.close()


@pytest.mark.slow
async def test_the_rest_of_a_refused_body_is_not_read_for_ever(site: Site) -> None:
    async with connected(site) as (_, writer):
        writer.write(b"POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999999\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(2_000):
                writer.write(b"x" * 65_536)
                await writer.drain()
        assert writer.transport.is_closing()


IMPORT = b"POST /api/import/contacts HTTP/1.1\r\nHost: a\r\n"
IMPORT += b"Content-Type: multipart/form-data; boundary=B\r\n"


async def dripping(site: Site, head: bytes) -> Streams:
    """Begin a body that does not go on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    before = site.app[METRICS].active["api"]
    writer.write(head + b"Content-Length: 60000\r\n\r\n{")
    await until(lambda: site.app[METRICS].active["api"] > before)
    return reader, writer


@pytest.mark.parametrize("known", [True, False])
async def test_slow_bodies_of_one_holder_make_room_behind_a_proxy(
    db: Database, known: bool
) -> None:
    """All come from one address, as with the compose files: the proxy's."""
    limits = Limits(connections=4, connections_per_address=4)
    async with serving(db, Config(limits=limits)) as site:
        key = await site.key(await site.user())
        who = f"X-API-Key: {key}\r\n".encode() if known else b""
        path = b"/api/contacts" if known else b"/api/auth/token"
        greedy = b"POST %s HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: %s\r\n" % (path, b"203.0.113.9")
        other = greedy.replace(b"203.0.113.9", b"198.51.100.7").replace(path, b"/api/auth/token")
        kept = await dripping(site, other + b"")
        held = [await dripping(site, greedy + who) for _ in range(3)]
        newcomer = await opened(site, "127.0.0.1")
        assert (await held[0][0].readline()).startswith(b"HTTP/1.1 503 ")
        assert not kept[0].at_eof()
        for _, writer in (*held, kept, newcomer):
            writer.close()


@pytest.mark.parametrize(("most", "refused"), [(bodies.UPLOADS, True), (99, False)])
async def test_an_account_has_few_uploads_open(
    db: Database, monkeypatch: pytest.MonkeyPatch, most: int, refused: bool
) -> None:
    monkeypatch.setattr(bodies, "UPLOADS", most)
    async with serving(db) as site:
        key = await site.key(await site.user())
        head = IMPORT + f"X-API-Key: {key}\r\n".encode()
        held = [await dripping(site, head) for _ in range(8)]
        await until(lambda: sum(site.app[bodies.UPLOADING].values()) == 8)
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(head + b"Content-Length: 4\r\n\r\nname")
        said = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert (b" 429 " in said and b"\r\nretry-after: " in said) == refused
        for _, one in (*held, (reader, writer)):
            one.close()
        await until(lambda: not site.app[bodies.UPLOADING])

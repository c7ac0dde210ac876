"""Slow, idle and too many clients, over plain sockets."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import structlog

from gateway.appkeys import METRICS
from gateway.config import Config, Limits
from outbox.database import Database
from tests.support.site import Site, serving

pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
FAST = Limits(header_seconds=0.4, body_seconds=0.8, keep_alive_seconds=1.5)
HEAD = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"
BODY = b"POST /api/auth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture
async def fast(db: Database) -> AsyncIterator[Site]:
    async with serving(db, Config(limits=FAST)) as site:
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


async def drip(writer: asyncio.StreamWriter, data: bytes, every: float) -> None:
    for byte in data:
        writer.write(bytes([byte]))
        await asyncio.sleep(every)


def rejected(site: Site, reason: str) -> float:
    value = site.app[METRICS].registry.get_sample_value(
        "http_requests_rejected_total", {"surface": "api", "reason": reason}
    )
    return value or 0.0


async def test_a_client_that_goes_away_is_no_fault_of_ours(site: Site) -> None:
    active = site.app[METRICS].active
    with structlog.testing.capture_logs() as lines:
        async with connected(site) as (_, writer):
            writer.write(BODY + b"{")
            await until(lambda: active["api"] == 1)
            writer.transport.abort()
            await until(lambda: active["api"] == 0)
    assert [line for line in lines if line["log_level"] == "error"] == []


async def until(holds: Callable[[], bool]) -> None:
    """Give way to the server until it has got so far."""
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


@pytest.mark.slow
@pytest.mark.parametrize("first", [b"", b"GET /li", HEAD[:-2]])
async def test_a_head_that_does_not_come(fast: Site, first: bytes) -> None:
    async with connected(fast) as (reader, writer):
        writer.write(first)
        began = asyncio.get_running_loop().time()
        assert b" 408 " in await reader.read()
        assert 0.3 < asyncio.get_running_loop().time() - began < 2.5
    assert rejected(fast, "slow") == 1


async def test_a_head_that_drips(fast: Site) -> None:
    async with connected(fast) as (reader, writer):
        dripping = asyncio.create_task(drip(writer, b"GET / HTTP/1.1\r\nX: " + b"x" * 900, 0.01))
        # The first line alone: drips that cross the answer may reset the connection behind it.
        assert b" 408 " in await reader.readline()
        dripping.cancel()


@pytest.mark.slow
async def test_a_head_that_drips_on_a_used_connection(fast: Site) -> None:
    async with connected(fast) as (reader, writer):
        writer.write(HEAD)
        assert b" 200 " in await reader.readuntil(b"}")
        writer.write(HEAD[:10])
        assert b" 408 " in await reader.read()


@pytest.mark.slow
async def test_a_body_that_drips(fast: Site) -> None:
    async with connected(fast) as (reader, writer):
        dripping = asyncio.create_task(drip(writer, BODY + b" " * 99, 0.02))
        said = await reader.readline()
        assert b" 408 " in said
        dripping.cancel()
    assert rejected(fast, "slow") == 1


@pytest.mark.slow
async def test_an_idle_connection_is_kept_and_then_closed(fast: Site) -> None:
    async with connected(fast) as (reader, writer):
        writer.write(HEAD)
        await reader.readuntil(b"}")
        # Longer than a head may take: between requests only the keep-alive counts.
        await asyncio.sleep(0.9)
        writer.write(HEAD)
        assert b" 200 " in await reader.readuntil(b"}")
        began = asyncio.get_running_loop().time()
        assert await reader.read() == b""
        assert asyncio.get_running_loop().time() - began < 4
    assert rejected(fast, "slow") == 0


@pytest.mark.slow
async def test_a_client_that_does_not_read(fast: Site) -> None:
    async with connected(fast) as (_, writer):
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        requests = 0
        # Pipelined until nothing goes through any more: both sides' buffers are full.
        while not writer.transport.is_closing() and requests < 20_000:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 10)
            requests += 10
            await asyncio.sleep(0)
        began = asyncio.get_running_loop().time()
        while rejected(fast, "slow") == 0:
            assert asyncio.get_running_loop().time() - began < 10
            await asyncio.sleep(0.05)
        writer.transport.abort()


async def test_one_address_gets_its_share_and_others_theirs(db: Database) -> None:
    limits = Limits(connections=4, connections_per_address=3)
    async with serving(db, Config(limits=limits)) as site:
        held = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(3)]
        for reader, writer in held:
            writer.write(HEAD)
            await reader.readuntil(b"}")
        async with connected(site) as (reader, _):
            assert (await reader.read()).startswith(b"HTTP/1.1 503 ")
        other = await asyncio.open_connection("127.0.0.1", site.port, local_addr=("127.0.0.2", 0))
        other[1].write(HEAD)
        assert b" 200 " in await other[0].readuntil(b"}")
        third = await asyncio.open_connection("127.0.0.1", site.port, local_addr=("127.0.0.3", 0))
        assert (await third[0].read()).startswith(b"HTTP/1.1 503 ")
        assert site.runner.census() == {"active": 0, "idle": 4}
        for _, writer in (*held, other, third):
            writer.close()
            await writer.wait_closed()
        while site.runner.census()["idle"]:
            await asyncio.sleep(0.01)
        # What was held is free again.
        async with site.http.get("/livez") as answer:
            assert answer.status == 200

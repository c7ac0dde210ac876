"""Calls between two ends of a channel."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from gateway.server.processes.channel import Channel, Gone, Handler, open_channel

Ends = tuple[Channel, Channel, dict[str, Handler], dict[str, Handler]]


@pytest.fixture
async def ends() -> AsyncIterator[Ends]:
    left, right = socket.socketpair()
    here: dict[str, Handler] = {}
    there: dict[str, Handler] = {}
    one, two = await open_channel(left, here), await open_channel(right, there)
    yield one, two, here, there
    await one.close()
    await two.close()


async def echo(body: bytes) -> bytes:
    return body


async def test_both_ends_call_answer_and_call_back(ends: Ends) -> None:
    one, two, here, there = ends
    here["echo"] = there["echo"] = echo
    there["back"] = lambda body: two.call("echo", body + b"!")
    long = bytes(range(256)) * 10_000
    assert await one.call("echo", long) == long
    assert await two.call("echo") == b""
    found = await asyncio.gather(*(one.call("back", str(n).encode()) for n in range(50)))
    assert found == [f"{n}!".encode() for n in range(50)]
    # A call that nobody waits for leaves nothing.
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await one.call("echo")
    assert await one.call("echo", b"next") == b"next"
    assert not one._waiting


async def test_a_call_that_fails_there_is_told(ends: Ends) -> None:
    one, _, _, there = ends

    async def fails(_: bytes) -> bytes:
        raise ValueError("no")

    there["fails"] = fails
    for name in ("fails", "nobody knows it"):
        with pytest.raises(Gone):
            await one.call(name)
    there["echo"] = echo
    assert await one.call("echo", b"still") == b"still"


async def test_the_end_of_the_other_side_ends_waiting_calls(ends: Ends) -> None:
    one, two, _, there = ends
    reached = asyncio.Event()

    async def never(_: bytes) -> bytes:
        reached.set()
        await asyncio.Event().wait()
        return b""

    there["never"] = never
    waiting = asyncio.create_task(one.call("never"))
    await reached.wait()
    await two.close()
    with pytest.raises(Gone):
        await waiting
    await one.closed.wait()
    with pytest.raises(Gone):
        await one.call("never")

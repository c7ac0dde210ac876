"""Deadlines of sends: the source of a cancellation is never in doubt."""

import asyncio

import pytest

from outbox.clock import SystemClock
from tests.support.receiver import Visit, hostile
from tests.support.senders import post, sender


async def silence(visit: Visit) -> None:
    await visit.request()
    await visit.gone()


async def test_a_task_goes_on_after_its_sends_deadline() -> None:
    async with hostile(silence) as there, sender() as client:
        outcomes = [(await post(client, there.url, timeout_s=0.1)).outcome for _ in range(3)]
        task = asyncio.current_task()
        assert task is not None
        assert (outcomes, task.cancelling()) == (["timeout"] * 3, 0)


async def test_a_cancellation_at_the_deadline_is_still_a_cancellation() -> None:
    async with hostile(silence) as there, sender() as client:
        sending = asyncio.create_task(post(client, there.url, timeout_s=0.1))
        # From its begin on: on a busy machine the deadline may come before the request arrives.
        while not client._deadlines._running:
            await asyncio.sleep(0)
        [progress] = client._deadlines._running.values()
        while not progress.late:
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert sending.cancelled()


async def test_an_enclosing_timeout_is_told_from_the_sends_own() -> None:
    async with hostile(silence) as there, sender() as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await post(client, there.url, timeout_s=30.0)
        async with asyncio.timeout(30.0):
            assert (await post(client, there.url, timeout_s=0.1)).outcome == "timeout"


async def test_the_timer_rests_while_nothing_is_sent() -> None:
    async with hostile(silence) as there, sender() as client:
        await post(client, there.url, timeout_s=0.1)
        clock = SystemClock()
        until = clock.monotonic() + 5
        while client._deadlines._timer is not None and clock.monotonic() < until:
            await asyncio.sleep(0.01)
        assert client._deadlines._timer is None
        assert not client._deadlines._running

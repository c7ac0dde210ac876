"""Loads what the fields of many objects need with one transaction for all of them.

A loader is a domain unit `async (tx, keys, …) -> mapping of values by key`. Fields that are
resolved together ask for one key each; the units then run once, with all keys, on one snapshot.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from gateway.records.errors import Refusal
from outbox.database.transaction import Tx

V = TypeVar("V")
Unit = Callable[..., Awaitable[Mapping[str, V]]]
_Batch = tuple[Unit[Any], tuple[str, ...], tuple[Hashable, ...]]
TICKS = 3
"""Turns of the event loop to wait for more keys: fields of one level resume a few turns apart."""


class Loaders:
    """The loads of one request; `read` runs a unit on a snapshot."""

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self._read = read
        self._known: dict[Hashable, asyncio.Future[Any]] = {}
        self._batches: dict[Hashable, tuple[Unit[Any], tuple[Hashable, ...], list[str]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def load(self, unit: Unit[V], key: str, *args: Hashable) -> "asyncio.Future[V | None]":
        """Return the value of `key` in the mapping of `unit(tx, keys, *args)`; None when absent."""
        known = self._known.get((unit, args, key))
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        future: asyncio.Future[V | None] = loop.create_future()
        self._known[unit, args, key] = future
        if not self._batches:
            loop.call_soon(self._wait, TICKS)
        self._batches.setdefault((unit, args), (unit, args, []))[2].append(key)
        return future

    def forget(self) -> None:
        """Read everything anew from now on, because the request has written."""
        self._known.clear()

    def _wait(self, ticks: int) -> None:
        if ticks:
            asyncio.get_running_loop().call_soon(self._wait, ticks - 1)
            return
        task = asyncio.get_running_loop().create_task(self._run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self) -> None:
        batches = [*self._batches.values()]
        self._batches = {}
        futures = [[self._known[unit, args, key] for key in keys] for unit, args, keys in batches]
        units = [(unit, tuple(keys), args) for unit, args, keys in batches]
        results: Sequence[Any]
        try:
            results = await self._read(_together, units)
        except Exception as error:  # noqa: BLE001 - each field that waits raises it
            results = [error] * len(units)
        for (_, keys, _), theirs, values in zip(units, futures, results, strict=True):
            for key, future in zip(keys, theirs, strict=True):
                _settle(future, values, key)


def _settle(future: "asyncio.Future[Any]", values: Any, key: str) -> None:
    # The request may have ended meanwhile.
    if future.done():
        return
    if isinstance(values, Exception):
        future.set_exception(values)
    else:
        future.set_result(values.get(key))


async def _together(tx: Tx, batches: Sequence[_Batch]) -> list[Any]:
    """Return the mapping of each batch, or its refusal."""
    results: list[Any] = []
    for unit, keys, args in batches:
        try:
            results.append(await unit(tx, keys, *args))
        except Refusal as refusal:
            results.append(refusal)
    return results

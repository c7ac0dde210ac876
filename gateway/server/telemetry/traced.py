"""A database that makes a span of each unit of a request; used only while spans are exported."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from typing import Any, Concatenate, ParamSpec, TypeVar

from gateway.server.telemetry.spans import Spans
from outbox.database.leadership import Leadership, Pace
from outbox.database.transaction import (
    PACE,
    Database,
    Idle,
    Name,
    Purpose,
    Scrubbed,
    Tx,
    Unsubscribe,
    Values,
    Wake,
)
from outbox.events import cause
from outbox.observer import Observer

P = ParamSpec("P")
T = TypeVar("T")


class TracedDatabase:
    """The database `inner`; units without a request, such as those of the drain, have no span."""

    def __init__(self, inner: Database, spans: Spans) -> None:
        self._inner = inner
        self._spans = spans
        self.engine = inner.engine
        self.shared = inner.shared
        self.one_writer = inner.one_writer
        self.batch = inner.batch
        self.clock = inner.clock
        self.ids = inner.ids
        self.closed_owners, self.unreadable_owners = inner.closed_owners, inner.unreadable_owners
        self.moves_seen = inner.moves_seen
        self.reserve = inner.reserve
        self.meter = inner.meter

    @property
    def observer(self) -> Observer:
        """Receives the reports of all parts that work with the database."""
        return self._inner.observer

    @observer.setter
    def observer(self, observer: Observer) -> None:
        self._inner.observer = observer

    def apart(self, purpose: Purpose) -> Database:
        return self._inner.apart(purpose)

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._timed("read", unit, self._inner.read(unit, *args, **kwargs))

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return await self._timed("scan", unit, self._inner.scan(owner, unit, *args, **kwargs))

    def stream(self, owner: str, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        return self._inner.stream(owner, sql, *args)

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._timed("write", unit, self._inner.write(unit, *args, **kwargs))

    def listen(
        self, callback: Wake, node: Name | None = None, idle: Idle | None = None
    ) -> Unsubscribe:
        return self._inner.listen(callback, node, idle)

    def announce(self) -> None:
        self._inner.announce()

    def on_change(self, callback: Callable[[Collection[str]], None]) -> Unsubscribe:
        return self._inner.on_change(callback)

    def on_move(self, callback: Callable[[], None]) -> Unsubscribe:
        return self._inner.on_move(callback)

    @property
    def moves_epoch(self) -> int:
        return self._inner.moves_epoch

    def leadership(self, pace: Pace = PACE) -> Leadership:
        return self._inner.leadership(pace)

    async def scrub(self, tables: Iterable[Scrubbed]) -> bool:
        return await self._inner.scrub(tables)

    def census(self) -> Mapping[str, int]:
        return self._inner.census()

    async def close(self) -> None:
        await self._inner.close()

    async def _timed(self, op: str, unit: Callable[..., Any], work: Awaitable[T]) -> T:
        began = self.clock.monotonic()
        error: str | None = None
        try:
            return await work
        except BaseException as problem:
            error = type(problem).__name__
            raise
        finally:
            seconds = self.clock.monotonic() - began
            name = getattr(unit, "__name__", type(unit).__name__)
            self._spans.unit(cause.get().traceparent, op, name, seconds, error)

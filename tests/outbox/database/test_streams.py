"""Streams: rows of one moment for a slow reader, one of each owner at a time, and an end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from outbox.database import streaming
from outbox.database.fair_limit import Crowded
from outbox.database.transaction import Database, Tx, Values
from outbox.database.unit_limits import STREAMS, STREAMS_WAITING
from outbox.errors import DatabaseUnavailable
from tests.support.waiting import until

ROWS = "select name, began_at from duties order by name"
MANY = 5_000


async def _fill(tx: Tx, first: int, count: int) -> None:
    for number in range(first, first + count):
        await tx.run(
            "insert into duties (name, began_at) values ($1, $2)", f"{number:06}" + "x" * 200,
            number,
        )  # fmt: skip


async def test_a_stream_has_the_rows_of_one_moment(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    stream = db.stream("a", ROWS)
    first = await anext(stream)
    assert 0 < len(first) < MANY
    await db.write(_fill, MANY, 10)
    rest: list[Sequence[Any]] = [*first]
    async for batch in stream:
        rest += batch
    assert [row[1] for row in rest] == list(range(MANY))
    assert [batch async for batch in db.stream("a", f"{ROWS} limit $1", 0)] == []


async def test_a_stream_ends_after_its_time(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.write(_fill, 0, MANY)
    monkeypatch.setattr(streaming, "STREAM_SECONDS", -1.0)
    with pytest.raises(DatabaseUnavailable, match="took too long"):
        await anext(db.stream("a", ROWS))
    monkeypatch.undo()
    # Its place is free again.
    stream = db.stream("a", ROWS)
    assert len(await anext(stream)) > 0
    await stream.aclose()


async def test_a_closing_database_ends_its_streams(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    stream = db.stream("a", ROWS)
    await anext(stream)
    await db.close()
    await stream.aclose()


SMALL = f"{ROWS} limit $1"


async def _slow(db: Database, owner: str) -> AsyncGenerator[Sequence[Values], None]:
    """Begin a stream whose reader takes one batch."""
    stream = db.stream(owner, ROWS)
    await anext(stream)
    return stream


async def test_a_short_stream_keeps_no_place_and_waits_for_none(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    slow = [await _slow(db, f"slow {number}") for number in range(STREAMS)]
    # As many as one owner likes, which nobody reads to their end, and no snapshot with them.
    short = [db.stream("a", SMALL, 200) for _ in range(STREAMS)]
    for stream in short:
        assert len(await anext(stream)) > 0
    long = asyncio.create_task(anext(db.stream("a", ROWS)))
    await until(lambda: _streaming(db)._places.waiting == 1)
    for stream in (*short, *slow):
        await stream.aclose()
    assert len(await long) > 0


@pytest.mark.parametrize(("rate", "gives"), [(2**40, True), (1, False)])
async def test_a_slow_reader_gives_way_when_others_wait(
    db: Database, monkeypatch: pytest.MonkeyPatch, rate: int, gives: bool
) -> None:
    """But not for a second stream of its own, and not while nobody waits."""
    monkeypatch.setattr(streaming, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr(streaming, "BRISK_RATE", rate)
    monkeypatch.setattr(streaming, "LOOK_SECONDS", 0.01)
    await db.write(_fill, 0, 2 * MANY)
    slow = [await _slow(db, f"slow {number}") for number in range(STREAMS)]
    for stream in slow:
        # What was read at once came with the first batch; this one is of the stream.
        await anext(stream)
        await anext(stream)
    own = asyncio.create_task(anext(db.stream(f"slow {STREAMS - 1}", ROWS)))
    await until(lambda: _streaming(db)._places.waiting == 1)
    assert len(_streaming(db)._turns) == STREAMS
    new = asyncio.create_task(_slow(db, "new"))
    await until(lambda: new.done() or (not gives and _streaming(db)._places.waiting == 2))
    gone = [turn for turn in slow if not await _goes_on(turn)] if gives else []
    assert (new.done(), len(gone)) == (gives, gives)
    for task in (own, new):
        task.cancel()
    await asyncio.wait([own, new])
    for stream in slow:
        await stream.aclose()


async def test_who_finds_no_place_hears_when_one_should_be_free(db: Database) -> None:
    await db.write(_fill, 0, MANY)
    slow = await _slow(db, "a")
    waits = [asyncio.create_task(anext(db.stream("a", ROWS))) for _ in range(STREAMS_WAITING)]
    await until(lambda: _streaming(db)._places.waiting == STREAMS_WAITING)
    with pytest.raises(Crowded) as caught:
        await anext(db.stream("a", ROWS))
    # Its own stream ends in five minutes at the latest.
    assert 200 < caught.value.seconds <= 300
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)
    await slow.aclose()
    assert not _streaming(db)._turns


async def _goes_on(stream: AsyncGenerator[Sequence[Values], None]) -> bool:
    try:
        await anext(stream)
    except DatabaseUnavailable:
        return False
    return True


def _streaming(db: Database) -> Any:
    return db._streams._streaming  # type: ignore[attr-defined]

"""After a move the source has nothing of the owner but one row that says where he is.

What tells him apart is searched in a dump: what the engine itself writes of all tables, whatever
the program knows of them.
"""

from __future__ import annotations

import asyncio
import base64
import sqlite3
import subprocess
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from struct import pack
from typing import Any

import asyncpg
import pytest

from gateway.cli.moving import owner_removal
from gateway.cli.moving.moved_rows import TABLES
from gateway.domain.product_ownership import OWNERSHIP, UNOWNED
from outbox.database.ownership import Common, of_owner
from outbox.database.transaction import Tx
from outbox.events import event_index
from tests.support.moved import Pair, run
from tests.support.movers import PAYMENT, House, opened

SHORTEST = 6
"""Shorter values are in any dump."""
DIGITS = event_index.WIDTH * 2
"""Hex digits of one mark."""
PROGRAMS = "select setting from pg_config where name = 'BINDIR'"


@dataclass(frozen=True, slots=True)
class Traces:
    """The words of an owner, each with its table and column, and the marks of his events.

    `event_marks` has no id, but four bytes of a checksum for each event. They say of a known id
    that it was probably here, so they are searched for as well.
    """

    words: Mapping[str, str]
    marks: Collection[str]

    def found(self, dump: str) -> list[str]:
        """Return where the words that a dump has came from, and the marks."""
        text = dump.casefold()
        seen = {
            where for word, where in self.words.items() if any(one in text for one in _forms(word))
        }
        stored = set(_marks(text))
        return sorted(seen) + sorted(stored.intersection(self.marks))


async def traces(url: str, owner_id: str) -> Traces:
    """Read what only this owner has: ids, names, addresses, secrets, contents."""
    db = await opened(url)
    try:
        return await db.read(_traces, owner_id)
    finally:
        await db.close()


async def _traces(tx: Tx, owner_id: str) -> Traces:
    mine: dict[str, str] = {owner_id: "owners.id"}
    others: list[str] = []
    for table in OWNERSHIP:
        ways = OWNERSHIP[table]
        own = "false" if isinstance(ways, Common) else of_owner(OWNERSHIP, table)
        for row in await tx.all(
            f"select *, ({own}) as is_own from {table} where $1 = $1", owner_id
        ):
            for name in row.keys():  # noqa: SIM118
                if word := _word(row[name]):
                    if row["is_own"]:
                        mine.setdefault(word, f"{table}.{name}")
                    elif table not in UNOWNED:
                        others.append(word)
    known = "\n".join(others)
    events = await tx.all("select record_id, request_id from events where owner_id = $1", owner_id)
    return Traces(
        {word: where for word, where in mine.items() if word == owner_id or word not in known},
        {
            _mark(one)
            for row in events
            for one in (row["record_id"], row["request_id"])
            if one is not None and one not in known
        },
    )


def dump_of(url: str) -> str:
    """Return all rows as the engine's own program writes them, and nothing of the schema."""
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
            return "\n".join(line for line in db.iterdump() if line.startswith("INSERT"))
    program = Path(asyncio.run(_programs(url))) / "pg_dump"
    return subprocess.run(
        [program, "--data-only", "--inserts", url], check=True, capture_output=True, text=True
    ).stdout


async def _programs(url: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        return str(await connection.fetchval(PROGRAMS))
    finally:
        await connection.close()


def _word(value: Any) -> str:
    """Return a text, or bytes in hex, when it can tell an owner apart."""
    if isinstance(value, bytes | memoryview):
        value = bytes(value).hex()
    return value if isinstance(value, str) and len(value) >= SHORTEST else ""


def _forms(word: str) -> tuple[str, str]:
    """Return a word as a dump has it in a text, and in bytes."""
    return word.replace("'", "''").casefold(), word.encode().hex()


def _mark(one: str) -> str:
    return pack("<I", event_index.checksum(one)).hex()


def _marks(dump: str) -> Iterator[str]:
    """Yield the marks of all events in a dump."""
    for line in dump.splitlines():
        if "event_marks" in line and "values" in line:
            for part in line.split("'"):
                digits = part.removeprefix("\\x")
                if len(digits) == event_index.BLOCK * DIGITS:
                    yield from (digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS))


def all_of(house: House) -> Traces:
    """Return all that tells the first owner apart, with what the source has sealed."""
    found = asyncio.run(traces(house.url, house.mover))
    [key] = house.headers.values()
    plain = {
        house.email: "users.email", house.webhook: "webhooks.id", key: "the whole key",
        "ana.example": "store_hosts.value", house.secret: "webhooks.secret",
        base64.b64decode(house.secret.removeprefix("whsec_")).hex(): "webhooks.secret",
        PAYMENT.hex(): "payment_secrets.secret",
    }  # fmt: skip
    return replace(found, words={**found.words, **plain})


def traces_after_the_move(pair: Pair) -> list[str]:
    """Move the first owner; return where the source tells of him, but for the row of `owners`."""
    searched = all_of(pair.house)
    before = searched.found(dump_of(pair.house.url))
    tables = {one.partition(".")[0] for one in before}
    # What is searched for was there, in each table that has texts of his.
    assert {"users", "api_keys", "webhooks", "events", "attempts", "store_hosts"} <= tables
    assert set(searched.marks) & set(before)
    run(pair)
    lines = dump_of(pair.house.url).splitlines()
    [kept] = [line for line in lines if "'gone'" in line and pair.house.mover in line]
    assert "owners" in kept.split("VALUES")[0]
    # That row says no more than where he is.
    assert searched.found(kept) == ["owners.id"]
    return searched.found("\n".join(line for line in lines if line != kept))


@pytest.mark.parametrize("ends", ["offline", pytest.param("pair", marks=pytest.mark.proof)])
def test_nothing_is_left(request: pytest.FixtureRequest, ends: str) -> None:
    pair: Pair = request.getfixturevalue(ends)
    assert traces_after_the_move(pair) == []
    assert pair.source().mentions == {"owners": 1}


def test_the_search_finds_what_is_left(offline: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    left = ("attempts", "audit")
    monkeypatch.setattr(owner_removal, "TABLES", tuple(one for one in TABLES if one not in left))
    found = traces_after_the_move(offline)
    assert {one.partition(".")[0] for one in found} >= set(left)

"""The client certificates that end first, of several owners, found in pieces."""

import random
from collections import Counter

import pytest

from outbox.database.index_plans import by_index
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY, SECOND
from outbox.queue.log import certificate_ends
from outbox.queue.log.certificate_ends import (
    EACH_OWNER,
    MOST_ENDING,
    Ending,
    EndingCertificates,
)
from outbox.queue.log.gauges import Readings
from outbox.sending.client_certificates import ENDS_SOON
from tests.support.rows import add_webhooks, webhook_id

Ends = dict[int, tuple[str, int]]
"""Owner and end of the certificate, by webhook."""


async def set_ends(tx: Tx, ends: Ends) -> None:
    for number, (owner, until) in ends.items():
        await tx.run(
            "update webhooks set owner_id = $2, certificate_until = $3, state = 'active'"
            " where id = $1", webhook_id(number), owner, until,
        )  # fmt: skip


async def one_pass(db: Database, certificates: EndingCertificates) -> list[Ending]:
    """Read all pieces of a pass; return what is named after it."""
    last = False
    while not last:
        piece = await db.read(certificates.read)
        last = piece.end is None
        named = certificates.put(piece)
    return named


def expected(ends: Ends, now: int) -> list[tuple[str, int]]:
    named: list[tuple[str, int]] = []
    of: Counter[str] = Counter()
    to_end = sorted((until, n) for n, (_, until) in ends.items() if now <= until < now + ENDS_SOON)
    ended = sorted((-until, n) for n, (_, until) in ends.items() if until < now)
    for until, number in (*to_end, *((-until, number) for until, number in ended)):
        owner = ends[number][0]
        of[owner] += 1
        if of[owner] <= EACH_OWNER:
            named.append((webhook_id(number), until))
    return named[:MOST_ENDING]


def short(named: list[Ending]) -> list[tuple[str, int]]:
    return [(one.webhook_id, one.until) for one in named]


async def test_those_of_active_webhooks_are_named_and_first_those_that_are_still_to_end(
    db: Database,
) -> None:
    await db.write(add_webhooks, 1, 9)
    now = await db.read(_now)
    ends: Ends = {
        1: ("ana", now - DAY), 2: ("ana", now + ENDS_SOON - DAY), 3: ("ana", now + ENDS_SOON + DAY),
        4: ("ana", now), 5: ("ana", now), 6: ("bia", now - 400 * DAY), 7: ("bia", now + DAY),
        8: ("bia", 1),
    }  # fmt: skip
    await db.write(set_ends, ends)
    await db.write(_state, 4, "paused")
    await db.write(_state, 5, "disabled")
    found = (await Readings(db).take(lambda _: [])).ending
    assert short(found) == [(webhook_id(n), ends[n][1]) for n in (7, 2, 1, 6)] + [
        (webhook_id(8), 1)
    ]
    assert [one.owner_id for one in found] == ["bia", "ana", "ana", "bia", "bia"]


async def test_one_owner_fills_no_more_than_three_places(db: Database) -> None:
    await db.write(add_webhooks, 1, 50)
    now = await db.read(_now)
    # Fifty of one owner end first, and one of each other owner ends after them or has ended.
    ends: Ends = {n: ("ana", now + DAY + n) for n in range(1, 41)}
    ends |= {n: (f"owner {n}", now + 20 * DAY + n) for n in range(41, 46)}
    ends |= {n: (f"owner {n}", now - 20 * DAY - n) for n in range(46, 51)}
    await db.write(set_ends, ends)
    found = (await Readings(db).take(lambda _: [])).ending
    assert [one.webhook_id for one in found] == [
        webhook_id(n) for n in (1, 2, 3, *range(41, 46), *range(46, 51))
    ]


@pytest.mark.parametrize("webhooks", [1, 2, 7, 59, 60, 61, 1_000])
async def test_any_pieces_find_the_same(db: Database, webhooks: int) -> None:
    await db.write(add_webhooks, 1, 60)
    dice = random.Random(webhooks)
    now = await db.read(_now)
    # Far from the moments that decide.
    at = now + DAY // 2
    certificates = EndingCertificates(webhooks)
    for _ in range(3):
        ends: Ends = {
            n: (f"owner {dice.randrange(12)}", at + dice.randrange(-40, 40) * DAY + n * SECOND)
            for n in range(1, 61)
        }
        await db.write(set_ends, ends)
        named = await one_pass(db, certificates)
        assert certificates.complete
        assert short(named) == expected(ends, now)


async def test_a_pass_names_what_the_last_one_found_until_it_is_complete(db: Database) -> None:
    await db.write(add_webhooks, 1, 4)
    now = await db.read(_now)
    certificates = EndingCertificates(2)
    await db.write(set_ends, {1: ("ana", now + DAY), 4: ("ana", now + 2 * DAY)})
    assert certificates.put(await db.read(certificates.read)) == []
    assert not certificates.complete
    named = await one_pass(db, certificates)
    assert [one.webhook_id for one in named] == [webhook_id(1), webhook_id(4)]
    # One is renewed, one is deleted, and one is new.
    await db.write(set_ends, {1: ("ana", now + 90 * DAY), 3: ("bia", now + 3 * DAY)})
    await db.write(lambda tx: tx.run("delete from webhooks where id = $1", webhook_id(4)))
    assert certificates.put(await db.read(certificates.read)) == named
    named = await one_pass(db, certificates)
    assert [one.webhook_id for one in named] == [webhook_id(3)]
    # A unit that is repeated after a lost connection counts nothing twice.
    first, again = [await db.read(certificates.read) for _ in range(2)]
    assert (first.end, first.found) == (again.end, again.found) == (webhook_id(2), [])


async def test_a_new_leader_shows_nothing_before_it_knows_all_of_them(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alert waits for an hour, so a gap of its series would put it off."""
    monkeypatch.setattr(certificate_ends, "WEBHOOKS_AT_ONCE", 2)
    await db.write(add_webhooks, 1, 5)
    now = await db.read(_now)
    await db.write(set_ends, {5: ("ana", now + DAY)})
    readings = Readings(db)
    for complete in (False, False, True):
        reading = await readings.take(lambda _: [])
        assert readings.complete == complete
    assert [one.webhook_id for one in reading.ending] == [webhook_id(5)]


async def test_a_piece_reads_a_range_of_webhooks_and_no_other_row(db: Database) -> None:
    """Whatever the statistics tell: there are none of these webhooks yet."""
    await db.write(add_webhooks, 1, 3_000)
    is_sqlite = db.engine == "sqlite"
    key = "sqlite_autoindex_webhooks_1" if is_sqlite else "webhooks_pkey"

    async def plan(tx: Tx, sql: str, *args: object) -> str:
        await by_index(tx)
        rows = await tx.all(f"explain {'query plan ' * is_sqlite}{sql}", *args)
        return " ".join(str(row["detail" if is_sqlite else "QUERY PLAN"]) for row in rows)

    ids = webhook_id(100), webhook_id(1_100)
    for sql, args, bounds in (
        (certificate_ends.PIECE_END, (ids[0], 999), 1),
        (certificate_ends.PIECE_UNTIL, (ids[0], 5, ids[1]), 2),
        (certificate_ends.LAST_PIECE, (ids[0], 5), 1),
    ):
        told = await db.read(plan, sql, *args)
        assert key in told, told
        assert not {"Sort", "TEMP"} & set(told.split()), told
        told = told.replace(" ", "")
        assert (told.count("id>"), told.count("id<")) == (1, bounds - 1), told


async def _now(tx: Tx) -> int:
    return tx.now


async def _state(tx: Tx, number: int, state: str) -> None:
    await tx.run("update webhooks set state = $2 where id = $1", webhook_id(number), state)

"""`carteiro move` without servers: all that belongs to an owner moves, and what it refuses."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway.cli.moving.moved_rows import QUEUED_MAIL
from gateway.cli.moving.owner_copy import OwnerCopy
from outbox.clock import SystemClock
from outbox.database.sqlite.exclusive import SqliteExclusive
from outbox.database.sqlite.file import File
from outbox.errors import CannotStart
from outbox.queue.upkeep import owner_rows
from outbox.queue.upkeep.owner_moves import FAR
from tests.support.databases import PostgresServer
from tests.support.moved import Pair, goes_on, has_moved, run
from tests.support.movers import furnish, keys_at
from tests.support.process import command

MAILS = (
    "insert into notices values ('n', ?, 'w', 'k', 'r', 1, 0, 5, null)",
    "insert into queued_mails (id, owner_id, kind, customer_id, created_at, attempts, due_at,"
    " expires_at) select 'm', owner_id, 'k', id, 1, 0, 5, 9 from customers where owner_id = ?",
    "insert into queued_mails (id, owner_id, kind, order_id, contact_id, mailbox, created_at,"
    " attempts, due_at, expires_at) values ('o', ?, 'k', 'o', 'c', x'00', 1, 0, 5, 9)",
)


def test_everything_moves_and_goes_on(
    db_url: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two engines; rows are deleted in slices."""
    monkeypatch.setattr(owner_rows, "SLICE", 2)
    house = asyncio.run(furnish(db_url, tmp_path / "source.key"))
    keys_at(keys := tmp_path / "target.key")
    pair = Pair(house, target, keys)
    before = pair.source()
    assert f"Moved {house.email}" in run(pair)
    has_moved(pair, before)
    goes_on(pair)
    assert "0 rows are deleted" in run(pair)
    # And back.
    there = pair.there()
    back = Pair(replace(house, url=target, keys=keys), house.url, house.keys)
    run(back)
    assert pair.source().feed == there.feed
    assert pair.there().of(0) == {}


def changed(url: str, sql: str, *args: object) -> None:
    """Run a statement on a file."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db, db:
        db.execute(sql, args)


def found(url: str, sql: str, *args: object) -> set[object]:
    """Return the values of a column of a file."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
        return {value for (value,) in db.execute(sql, args)}


def content(pair: Pair) -> list[str]:
    """Return all that the source stores."""
    with closing(sqlite3.connect(pair.house.url.removeprefix("sqlite:///"))) as db:
        return list(db.iterdump())


def refused(pair: Pair, why: str, *more: str) -> None:
    """Check that the move is refused for this reason and changes nothing."""
    before = content(pair)
    assert why in run(pair, *more, status=1)
    assert content(pair) == before


def named(pair: Pair, email: str) -> Pair:
    """Return the pair with another owner to move."""
    return replace(pair, house=replace(pair.house, emails=[email]))


def test_what_the_target_has_already(offline: Pair) -> None:
    url, (mine, others) = offline.house.url, offline.house.emails
    run(named(offline, others))
    # The other owner has moved; now the first one meets the other's email and hostname there.
    changed(url, "update users set folded_email = ?, email = ?", others, others)
    refused(named(offline, others), "the target has an account")
    changed(url, "update users set folded_email = ?, email = ?", mine, mine)
    changed(url, "update store_hosts set value = 'bia.example'")
    refused(offline, "a store of the target has the hostname bia.example")


def test_what_does_not_fit(offline: Pair) -> None:
    house, keys = offline.house, offline.keys
    refused(named(offline, "nobody@example.com"), "there is no account")
    refused(replace(offline, target=house.url), "--to is the database")
    refused(replace(offline, keys=keys.with_name("none")), "there is no key file")
    keys_at(other := keys.with_name("other.key"))
    refused(replace(offline, house=replace(house, keys=other)), "does not belong to the database")
    refused(offline, "the owner is not leaving", "--cancel")
    # Beside the file of each database, as is the default.
    house.keys.rename(house.keys.with_name("carteiro.key"))
    (other_folder := keys.with_name("two")).mkdir()
    done = command(
        "move", house.email, "--to", f"sqlite:///{other_folder}/target.db",
        folder=keys.parent, CARTEIRO_DATABASE__URL=house.url,
    )  # fmt: skip
    assert "is missing; name one by --key-file" in done.stderr


def test_a_copy_to_look_at_on_either_side(offline: Pair) -> None:
    """Its mails would go out there, or those of the account never."""
    # The command makes the schema there.
    run(named(offline, "nobody@example.com"), status=1)
    for url in (offline.house.url, offline.target):
        changed(url, "update outbox_state set paused_at = 1")
        refused(offline, f"{url} is paused; run `carteiro resume`")
        refused(offline, "the owner is not leaving", "--cancel")
        changed(url, "update outbox_state set paused_at = null")
    assert "Moved" in run(offline)


def test_a_server_that_runs(offline: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in (offline.house.url, offline.target):
        lock = File(Path(url.removeprefix("sqlite:///")), SystemClock(), True, "full")
        lock.lock()
        try:
            assert "already in use" in run(offline, status=1)
        finally:
            lock.release()

    async def starts(self: SqliteExclusive) -> None:
        raise CannotStart("a server")

    # One that starts in the moment of closing.
    monkeypatch.setattr(SqliteExclusive, "must_be_alone", starts)
    refused(offline, "a server")


def test_a_server_of_postgresql_that_runs(offline: Pair, postgres_server: PostgresServer) -> None:
    with asyncio.Runner() as runner:
        pair = replace(offline, target=runner.run(postgres_server.empty()))
        node = runner.run(_node(pair.target))
        assert "stop all its servers first" in run(pair, status=1)
        runner.run(node.close())
        runner.run(postgres_server.drop(pair.target))


async def _node(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url, server_settings={"application_name": "carteiro"})


def test_rows_that_the_target_stores_otherwise(offline: Pair) -> None:
    before = offline.source()
    run(named(offline, "nobody"), status=1)
    changed(
        offline.target,
        "create trigger spoil after insert on contacts begin"
        " update contacts set notes = 'other' where id = new.id; end",
    )
    assert "contacts has" in run(offline, status=1)
    assert offline.there().of(0) == {}
    changed(offline.target, "drop trigger spoil")
    run(offline)
    has_moved(offline, before)


def test_nothing_is_due_while_an_owner_leaves_and_a_cancelled_move_leaves_all_as_it_was(
    offline: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, url = offline.house, offline.house.url
    for mail in MAILS:
        changed(url, mail, house.mover)
    # Fan-out of the last events is no part of what is undone.
    changed(url, "update events set seq = pos + 1000000 where seq is null")
    before = content(offline)

    async def fail(self: OwnerCopy, *ends: object) -> None:
        raise CannotStart("the copy fails")

    with monkeypatch.context() as patch:
        patch.setattr(OwnerCopy, "copy", fail)
        assert "the copy fails" in run(offline, status=1)
    waits = "select wait_until from lanes where owner_id "
    assert min(found(url, f"{waits} = ?", house.mover)) >= FAR  # type: ignore[type-var,operator]
    assert max(found(url, f"{waits} <> ?", house.mover)) < FAR  # type: ignore[type-var,operator]
    due = [f"select due_at from {one} where length(id) = 1" for one in QUEUED_MAIL]
    assert [found(url, one) for one in due] == [{5 + FAR}] * len(QUEUED_MAIL)
    # Another target knows nothing of it.
    other = replace(offline, target=offline.target.replace("target", "other"))
    for more in ((), ("--cancel",)):
        assert f"leaving for {offline.target}" in run(other, *more, status=1)
    assert "stays in" in run(offline, "--cancel")
    assert content(offline) == before
    run(offline)
    assert [found(offline.target, one) for one in due] == [{5}] * len(QUEUED_MAIL)
    assert max(found(offline.target, "select wait_until from lanes")) < FAR  # type: ignore[type-var,operator]
    assert "the target has the owner" in run(offline, "--cancel", status=1)

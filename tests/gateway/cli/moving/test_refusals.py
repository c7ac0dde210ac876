"""`carteiro move` refuses what cannot go well, and nothing is changed then."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from gateway.cli.moving.owner_copy import OwnerCopy
from outbox.clock import SystemClock
from outbox.database.sqlite.exclusive import SqliteExclusive
from outbox.database.sqlite.file import File
from outbox.errors import CannotStart
from outbox.queue.upkeep import owner_rows
from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.moved import has_moved, run
from tests.support.movers import House, Left, furnish, keys_at, look
from tests.support.process import command


@pytest.fixture
def house(tmp_path: Path, sqlite_files: SqliteFiles) -> House:
    """Two owners in an SQLite file."""
    made = asyncio.run(_furnished(sqlite_files, tmp_path))
    keys_at(tmp_path / "target.key")
    return made


async def _furnished(files: SqliteFiles, home: Path) -> House:
    return await furnish(await files.fresh(home), home / "source.key")


def there(house: House) -> tuple[str, Path]:
    """Return the target and its keys."""
    folder = house.keys.parent
    return f"sqlite:///{folder}/target.db", folder / "target.key"


def changed(house: House, sql: str, *args: object, url: str = "") -> None:
    """Run a statement on the source, or on another file."""
    with closing(sqlite3.connect((url or house.url).removeprefix("sqlite:///"))) as db, db:
        db.execute(sql, args)


def refused(house: House, why: str, *more: str) -> None:
    """Check that the move is refused for this reason and changes nothing."""
    before = content(house)
    assert why in run(house, *there(house), *more, status=1)
    assert content(house) == before


def content(house: House) -> list[str]:
    """Return all that the source stores."""
    with closing(sqlite3.connect(house.url.removeprefix("sqlite:///"))) as db:
        return list(db.iterdump())


def test_what_the_target_has_already(house: House) -> None:
    target, keys = there(house)
    run(replace(house, emails=house.emails[1:]), target, keys)
    # The other owner has moved; now the first one meets the other's email and hostname there.
    changed(house, "update users set folded_email = ?, email = ?", *house.emails[1:] * 2)
    refused(replace(house, emails=house.emails[1:]), "the target has an account")
    changed(house, "update users set folded_email = ?, email = ?", *house.emails[:1] * 2)
    changed(house, "update store_hosts set value = 'bia.example'")
    refused(house, "a store of the target has the hostname bia.example")


def test_what_does_not_fit(house: House) -> None:
    target, keys = there(house)
    assert "there is no account" in run(
        replace(house, emails=["nobody@example.com"]), target, keys, status=1
    )
    assert "--to is the database" in run(house, house.url, keys, status=1)
    assert "there is no key file" in run(house, target, keys.with_name("none"), status=1)
    keys_at(other := keys.with_name("other.key"))
    refused_keys = run(replace(house, keys=other), target, keys, status=1)
    assert "does not belong to the database" in refused_keys
    refused(house, "the owner is not leaving", "--cancel")
    # Beside the file of each database, as is the default.
    house.keys.rename(house.keys.with_name("carteiro.key"))
    (other_folder := keys.with_name("two")).mkdir()
    done = command(
        "move", house.email, "--to", f"sqlite:///{other_folder}/target.db",
        folder=keys.parent, CARTEIRO_DATABASE__URL=house.url,
    )  # fmt: skip
    assert "is missing; name one by --key-file" in done.stderr


def test_a_server_that_runs(house: House) -> None:
    target, keys = there(house)
    for url in (house.url, target):
        lock = File(Path(url.removeprefix("sqlite:///")), SystemClock(), True, "full")
        lock.lock()
        try:
            assert "already in use" in run(house, target, keys, status=1)
        finally:
            lock.release()


def test_a_server_of_postgresql_that_runs(
    house: House, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = asyncio.run(_empty(postgres_server))
    _, keys = there(house)
    with asyncio.Runner() as runner:
        node = runner.run(_node(url))
        assert "stop all its servers first" in run(house, url, keys, status=1)
        runner.run(node.close())
    run(house, url, keys)
    asyncio.run(postgres_server.drop(url))


async def _empty(server: PostgresServer) -> str:
    return await server.empty()


async def _node(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url, server_settings={"application_name": "carteiro"})


def test_a_server_that_starts_in_the_moment_of_closing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(self: SqliteExclusive) -> None:
        raise CannotStart("a server")

    monkeypatch.setattr(SqliteExclusive, "must_be_alone", found)
    refused(house, "a server")


def test_rows_that_the_target_stores_otherwise(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, keys = there(house)
    before = asyncio.run(look(house.url, house.owners))
    run(replace(house, emails=["nobody"]), target, keys, status=1)
    changed(
        house,
        "create trigger spoil after insert on contacts begin"
        " update contacts set notes = 'other' where id = new.id; end",
        url=target,
    )
    assert "contacts has" in run(house, target, keys, status=1)
    assert asyncio.run(look(target, house.owners)).of(0) == {}
    changed(house, "drop trigger spoil", url=target)
    run(house, target, keys)
    has_moved(house, target, before)


def stopped_after_closing(house: House, monkeypatch: pytest.MonkeyPatch) -> tuple[Left, list[str]]:
    """Fail in the copy; return what the source had, as a summary and in full."""
    before = asyncio.run(look(house.url, house.owners)), content(house)

    async def fail(self: OwnerCopy, *ends: object) -> None:
        raise CannotStart("the copy fails")

    with monkeypatch.context() as patch:
        patch.setattr(OwnerCopy, "copy", fail)
        assert "the copy fails" in run(house, *there(house), status=1)
    return before


def test_a_cancelled_move_leaves_everything_as_it_was(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fan-out of the last events is no part of what is undone.
    changed(house, "update events set seq = pos + 1000000 where seq is null")
    _, before = stopped_after_closing(house, monkeypatch)
    assert content(house) != before
    # Another target knows nothing of it.
    target, keys = there(house)
    other = target.replace("target", "other")
    for more in ((), ("--cancel",)):
        assert f"leaving for {target}" in run(house, other, keys, *more, status=1)
    assert "stays in" in run(house, *there(house), "--cancel")
    assert content(house) == before
    run(house, *there(house))
    assert "the target has the owner" in run(house, *there(house), "--cancel", status=1)


def test_rows_are_deleted_in_slices(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_rows, "SLICE", 2)
    target, keys = there(house)
    before = asyncio.run(look(house.url, house.owners))
    run(house, target, keys)
    has_moved(house, target, before)

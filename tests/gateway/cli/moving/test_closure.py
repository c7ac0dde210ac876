"""After a move the source has nothing of the owner but one row that says where he is."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.moving import owner_rows
from gateway.cli.moving.moved_rows import TABLES
from tests.gateway.cli.moving.test_live_deaths import pair
from tests.support.databases import SqliteFiles
from tests.support.moved import run
from tests.support.movers import PAYMENT, House, furnish, keys_at, look
from tests.support.traces import Traces, dump_of, traces

__all__ = ["pair"]


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


def traces_after_the_move(house: House, target: str, keys: Path) -> list[str]:
    """Move the first owner; return where the source tells of him, but for the row of `owners`."""
    searched = all_of(house)
    before = searched.found(dump_of(house.url))
    tables = {one.partition(".")[0] for one in before}
    # What is searched for was there, in each table that has texts of his.
    assert {"users", "api_keys", "webhooks", "events", "attempts", "store_hosts"} <= tables
    assert set(searched.marks) & set(before)
    run(house, target, keys)
    lines = dump_of(house.url).splitlines()
    [kept] = [line for line in lines if "'gone'" in line and house.mover in line]
    assert "owners" in kept.split("VALUES")[0]
    # That row says no more than where he is.
    assert searched.found(kept) == ["owners.id"]
    return searched.found("\n".join(line for line in lines if line != kept))


@pytest.fixture
def house(tmp_path: Path, sqlite_files: SqliteFiles) -> House:
    source = asyncio.run(sqlite_files.fresh(tmp_path))
    keys_at(tmp_path / "target.key")
    return asyncio.run(furnish(source, tmp_path / "source.key"))


def test_sqlite(house: House, tmp_path: Path) -> None:
    target = f"sqlite:///{tmp_path}/target.db"
    assert traces_after_the_move(house, target, tmp_path / "target.key") == []
    assert asyncio.run(look(house.url, house.owners)).mentions == {"owners": 1}


@pytest.mark.parametrize("left", ["attempts", "audit"])
def test_the_search_finds_what_is_left(
    house: House, tmp_path: Path, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_rows, "TABLES", tuple(one for one in TABLES if one != left))
    target = f"sqlite:///{tmp_path}/target.db"
    assert traces_after_the_move(house, target, tmp_path / "target.key") != []

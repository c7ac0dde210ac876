"""The origins of stores after an upgrade, and the work of finding one."""

from __future__ import annotations

import pytest

from gateway.domain.storefront.stores import store_origins
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate, migrate_at_once
from outbox.database.migration_files import read_migrations
from outbox.database.sql import insert
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import SOURCES
from tests.support.work import worked

PAGE = "https://pages.example"
USER = ("id", "email", "folded_email", "name", "password_hash", "created_at", "updated_at")
STORE = {
    "version": 1, "created_at": 1, "aliases": "[]", "idps": "[]", "shipping_rules": "[]",
    "cookie_same_site": "lax", "deal_on_checkout": True, "review_moderation": False,
    "one_review_each": False, "folded": "s", "sort_name": "s", "name": "S",
}  # fmt: skip


async def add(tx: Tx, owner_id: str, count: int, *, active: bool = True) -> None:
    """Add an account with stores of before there was the table, which all allow PAGE."""
    await insert(tx, "users", USER, [(*[owner_id] * 5, 1, 1)])
    columns = ("id", "owner_id", "hostname", "allowed_origins", "active", *STORE)
    rows = [
        (f"{owner_id}{n}", owner_id, f"{owner_id}{n}.example",
         f'["{PAGE}","https://{owner_id}{n}.example","{PAGE}"]', active, *STORE.values())
        for n in range(count)
    ]  # fmt: skip
    await insert(tx, "stores", columns, rows)


async def filled(tx: Tx) -> None:
    """Make the schema of before there was the table, with stores."""
    files = read_migrations("gateway", dict(SOURCES)["gateway"])
    made = next(one.number for one in files if one.name.endswith("_store_origins"))
    counts = {name: made - 1 if name == "gateway" else 10_000 for name, _ in SOURCES}
    await migrate_at_once(tx, SOURCES, counts)
    await add(tx, "ana", 300)
    await tx.run("update users set disabled_at = 1 where id = 'ana'")
    await add(tx, "bia", 300, active=False)
    await add(tx, "eva", 3)
    await tx.run("update stores set allowed_origins = '[]' where id = 'eva2'")


async def test_an_upgrade_lists_what_stores_allow(target: str) -> None:
    db = await database.open(target, clock=SystemClock(), ids=Ids())
    await db.write(filled)
    assert "store_origins" in [name[5:] for name in await migrate(db, SOURCES)]
    found = await db.read(_rows)
    assert [row for row in found if row[1] != "ana"] == [
        ("https://eva0.example", "eva", "eva0"), ("https://eva1.example", "eva", "eva1"),
        (PAGE, "eva", "eva0"), (PAGE, "eva", "eva1"),
    ]  # fmt: skip
    assert len(found) == 604
    origins = [PAGE, *(f"https://{one}.example" for one in ("eva1", "eva2", "bia1", "ana1"))]
    allowed = [await db.read(store_origins.is_allowed, origin) for origin in origins]
    assert allowed == [True, True, False, False, False]
    await db.close()


async def _rows(tx: Tx) -> list[tuple[str, str, str]]:
    rows = await tx.all("select * from store_origins order by value, owner_id, record_id")
    return [(row["value"], row["owner_id"], row["record_id"]) for row in rows]


@pytest.mark.parametrize("origin", [PAGE, "https://nobody.example"])
async def test_the_work_for_an_origin_does_not_grow_with_stores(target: str, origin: str) -> None:
    """Not with active ones, with inactive ones, nor with those of a disabled account before."""
    db = await database.open(target, clock=SystemClock(), ids=Ids())
    await db.write(filled)
    await migrate(db, SOURCES)
    await db.close()
    async with worked(target) as db:
        assert await db.write(store_origins.is_allowed, origin) is (origin == PAGE)
        assert db.most() < 200

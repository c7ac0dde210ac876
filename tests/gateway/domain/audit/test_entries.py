"""The audit log as it is read: in pages of an owner, whatever others have written."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.accounts import users
from gateway.domain.audit import entries
from gateway.domain.audit.entries import AuditPage, Query
from gateway.records import audit
from gateway.records.audit import Actor
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import first_at

ANA, BIA = "a" * 24, "b" * 24


def actor(owner_id: str = ANA, **more: Any) -> Actor:
    return Actor(owner_id, more.pop("via", "session"), **more)


async def write(db: Database, who: Actor, action: audit.Action, record_id: str) -> None:
    async def unit(tx: Tx) -> None:
        audit.record(tx, who, action, "contact", record_id, ["name"])

    await db.write(unit)


async def page(db: Database, query: Query = Query(), after: str = "", size: int = 20) -> AuditPage:  # noqa: B008 - it is frozen
    return await db.read(entries.page, actor(), query, after, size)


async def test_each_kind_of_actor_is_told(db: Database) -> None:
    ana = await db.write(users.add, email="a@example.com", name="Ana", password_hash="-")
    kinds = {
        ("account", ana): actor(ana),
        ("token", ana): actor(ana, via="bearer"),
        ("api_key", "k" * 24): actor(ana, via="api_key", key_id="k" * 24),
        ("customer", "c" * 24): actor(
            ana, via="storefront", store_id="s" * 24, customer_id="c" * 24
        ),
        ("visitor", "s" * 24): actor(ana, via="storefront", store_id="s" * 24),
        ("system", None): actor(ana, via="system", cause="expiry"),
    }
    for who in kinds.values():
        await write(db, who, "updated", "r" * 24)
    found = (await db.read(entries.page, actor(ana), Query(record_id=""), "", 20)).entries
    # Their ids tell the old from the new ones.
    assert all(one.id.startswith(first_at(one.at)) for one in found)
    assert all(abs(one.at - db.clock.wall()) < DAY for one in found)
    told = {(one.actor.kind, one.actor.id): one.actor.name for one in found if one.record_id != ana}
    assert told == {
        ("account", ana): "Ana", ("token", ana): "Ana", ("api_key", "k" * 24): None,
        ("customer", "c" * 24): None, ("visitor", "s" * 24): None, ("system", None): "expiry",
    }  # fmt: skip


async def test_a_rare_entry_is_found_page_after_page(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page examines a bounded number of entries, so it may be empty and still have a next one."""
    monkeypatch.setattr(entries, "SCANNED", 7)
    await write(db, actor(), "erased", "r" * 24)
    for _ in range(20):
        await write(db, actor(), "updated", "r" * 24)
    for query in (Query(action="erased"), Query(record_id="f" * 24, action="erased")):
        pages, after = list[AuditPage](), ""
        while True:
            pages.append(await page(db, query, after))
            if pages[-1].after is None:
                break
            after = pages[-1].after
            assert len(pages) < 9
        found = [one.action for each in pages for one in each.entries]
        assert found == (["erased"] if not query.record_id else [])
        assert len(pages) == (4 if not query.record_id else 1)

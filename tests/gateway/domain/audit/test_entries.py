"""The audit log as it is read: in pages of an owner, whatever others have written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from gateway.domain.accounts import users
from gateway.domain.audit import entries
from gateway.domain.audit.entries import Page, Query
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales import quotes
from gateway.records import actions, audit
from gateway.records.access import Actor
from gateway.records.draft import Draft
from outbox.database.sql import translate
from outbox.database.transaction import Database, Row, Tx
from outbox.ids import first_at

ANA, BIA = "a" * 24, "b" * 24
MANY = {"sqlite": 200_000, "postgres": 200_000}
FILL = """
insert into audit (owner_id, id, actor, actor_id, action, resource, record_id, fields)
/*sqlite with recursive number(n) as (select 1 union all select n + 1 from number where n < {n})*/
select $1, /*sqlite printf('%024x', n)*/ /*postgres lpad(to_hex(n), 24, '0')*/, 'api_key', $1,
  'updated', 'contact', $2, 'name'
from /*sqlite number*/ /*postgres generate_series(1, {n}) as number(n)*/
"""


def actor(owner_id: str = ANA, **more: Any) -> Actor:
    return Actor(owner_id, more.pop("via", "session"), **more)


async def write(db: Database, who: Actor, action: audit.Action, record_id: str) -> None:
    async def unit(tx: Tx) -> None:
        audit.record(tx, who, action, "contact", record_id, ["name"])

    await db.write(unit)


async def page(db: Database, query: Query = Query(), after: str = "", size: int = 20) -> Page:  # noqa: B008 - it is frozen
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
    told = {(one.actor.kind, one.actor.id): one.actor.name for one in found if one.record_id != ana}
    assert told == {
        ("account", ana): "Ana", ("token", ana): "Ana", ("api_key", "k" * 24): None,
        ("customer", "c" * 24): None, ("visitor", "s" * 24): None, ("system", None): "expiry",
    }  # fmt: skip


async def test_what_expires_is_the_systems(db: Database) -> None:
    ana = await db.write(users.add, email="a@example.com", name="Ana", password_hash="-")
    who = actor(ana)
    items = '[{"description":"x","quantity":1000,"unitPrice":5,"total":5}]'
    quote = await db.write(quotes.create, who, Draft({"items": items}, {"items": items}))

    async def lapse(tx: Tx) -> None:
        await tx.run(
            "update quotes set status = 'sent', valid_until = 1, lapses_at = 1 where id = $1",
            quote.id,
        )

    await db.write(lapse)
    assert await db.write(quotes.expire_quotes, 10) == 1
    last, first = (await db.read(entries.page, who, Query(record_id=quote.id), "", 20)).entries
    assert (first.action, first.actor.kind) == ("created", "account")
    assert (last.action, last.actor.kind, last.actor.name) == ("updated", "system", "expiry")
    assert last.fields == ["status"]


async def test_an_entry_is_there_only_with_its_change(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        await actions.insert(tx, actor(), CONTACTS, {"name": "Bruno", "source": "api"})
        raise ValueError

    with pytest.raises(ValueError):
        await db.write(unit)
    assert (await page(db)).entries == []


async def test_the_latest_entries_of_a_record(db: Database) -> None:
    for number in range(entries.LATEST + 2):
        await write(db, actor(), "updated", f"{number:024x}")
        await write(db, actor(), "updated", "f" * 24)
        await write(db, actor(BIA), "updated", "f" * 24)
    found = await db.read(entries.latest, actor(), "f" * 24)
    assert len(found) == entries.LATEST
    assert [one.id for one in found] == sorted((one.id for one in found), reverse=True)
    assert {one.record_id for one in found} == {"f" * 24}


async def test_a_rare_entry_is_found_page_after_page(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page examines a bounded number of entries, so it may be empty and still have a next one."""
    monkeypatch.setattr(entries, "SCANNED", 7)
    await write(db, actor(), "erased", "r" * 24)
    for _ in range(20):
        await write(db, actor(), "updated", "r" * 24)
    for query in (Query(action="erased"), Query(record_id="f" * 24, action="erased")):
        pages, after = list[Page](), ""
        while True:
            pages.append(await page(db, query, after))
            if pages[-1].after is None:
                break
            after = pages[-1].after
            assert len(pages) < 9
        found = [one.action for each in pages for one in each.entries]
        assert found == (["erased"] if not query.record_id else [])
        assert len(pages) == (4 if not query.record_id else 1)


@contextmanager
def noted(tx: Tx, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Sequence[Any]]]]:
    """Collect the statements of a transaction."""
    seen: list[tuple[str, Sequence[Any]]] = []
    ask = tx.all

    async def all_(sql: str, *args: Any) -> list[Row]:
        seen.append((sql, args))
        return await ask(sql, *args)

    with monkeypatch.context() as patched:
        patched.setattr(type(tx), "all", lambda _, sql, *args: all_(sql, *args))
        yield seen


QUERIES = {
    "own": Query(),
    "record": Query(record_id="e" * 24),
    "record and actor": Query(record_id="e" * 24, actor="account"),
    "action": Query(action="erased"),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_a_page_costs_the_same_beside_another_owners_many(
    db: Database, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With statistics from before, too: they know of an empty table."""
    if db.engine == "postgres":
        await db.write(lambda tx: tx.run("analyze audit"))
    many = MANY[db.engine]
    # The same record ids: nothing hinders that, and only one's own may be shown.
    await db.write(lambda tx: tx.run(FILL.format(n=many), BIA, "e" * 24))
    for _ in range(3):
        await write(db, actor(), "updated", "e" * 24)

    async def unit(tx: Tx) -> None:
        with noted(tx, monkeypatch) as seen:
            found = await entries.page(tx, actor(), QUERIES[name], "", 20)
        assert len(found.entries) == (0 if name == "action" else 3)
        [(sql, args)] = [(sql, args) for sql, args in seen if "from audit" in sql]
        if tx.engine == "sqlite":
            steps = [row["detail"] for row in await tx.all(f"explain query plan {sql}", *args)]
            index = "audit_records" if "record" in name else "PRIMARY KEY"
            [look] = [step for step in steps if "audit" in step]
            assert re.match(rf"SEARCH audit USING (INDEX )?{index} \(.*id<\?", look), steps
            # The rows come in their order, so the limit ends the search.
            assert [step for step in steps if "ORDER BY" in step and "part" in step] == []
        else:
            rows = await tx.all(f"explain (analyze) {translate(sql, 'postgres')}", *args)
            plan = "\n".join(row[0] for row in rows)
            index = "audit_records" if "record" in name else "audit_pkey"
            assert f"Index Scan Backward using {index}" in plan, plan

    await db.read(unit)


async def test_old_and_new_entries_are_told_apart_by_their_ids(db: Database) -> None:
    await write(db, actor(), "updated", "f" * 24)
    [entry] = (await page(db)).entries
    assert entry.id.startswith(first_at(entry.at))
    assert abs(entry.at - db.clock.wall()) < 60_000_000

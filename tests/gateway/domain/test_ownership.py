"""Every table declares how its rows belong to an owner, and the declarations are true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.product_ownership import GATEWAY, OWNERSHIP, UNOWNED
from outbox.database.ownership import OUTBOX, Common, Ownership, Way
from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import parking
from tests.support import every_table
from tests.support.databases import SqliteFiles
from tests.support.drain import drain, inbox, ring
from tests.support.movers import trade
from tests.support.owned_rows import shares
from tests.support.rest import RestApi
from tests.support.shop import open_shop

FILLED = {
    "users", "api_keys", "tallies", "audit", "contacts", "stores", "store_hosts", "coupons",
    "coupon_codes", "products", "product_slugs", "product_shelves", "product_terms", "customers",
    "customer_emails", "customer_sessions", "customer_addresses", "reviews",
    "review_quotas", "review_totals", "carts", "orders", "order_tokens",
    "order_holders", "stock_reservations", "checkouts", "webhooks", "lanes", "events",
    "deliveries", "attempts", "figures", "chain_ends", "store_origins",
}  # fmt: skip


# Without virtual tables of SQLite and what stores their content.
COLUMNS = """
/*sqlite select t.name as "table", c.name as name from pragma_table_list t
join pragma_table_info(t.name) c
where t.schema = 'main' and t.type = 'table' and t.name not like 'sqlite_%'*/
/*postgres select c.relname as "table", a.attname as name from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p')*/
"""
REFERENCES = """
/*sqlite select t.name as "table", f."from" as name, f."table" as parent, f."to" as key
from pragma_table_list t join pragma_foreign_key_list(t.name) f where t.schema = 'main'*/
/*postgres select c.relname as "table", a.attname as name, p.relname as parent, k.attname as key
from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_class p on p.oid = f.confrelid
join pg_attribute a on a.attrelid = c.oid and a.attnum = f.conkey[1]
join pg_attribute k on k.attrelid = p.oid and k.attnum = f.confkey[1]
where f.contype = 'f' and c.relnamespace = current_schema()::regnamespace*/
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of each table, and its foreign keys: table, column, parent, key."""

    columns: Mapping[str, frozenset[str]]
    references: frozenset[tuple[str, str, str, str]]


async def schema(tx: Tx) -> Schema:
    """Read which tables there are."""
    columns: dict[str, set[str]] = {}
    for row in await tx.all(COLUMNS):
        columns.setdefault(row["table"], set()).add(row["name"])
    return Schema(
        {table: frozenset(names) for table, names in columns.items()},
        frozenset(
            (row["table"], row["name"], row["parent"], row["key"])
            for row in await tx.all(REFERENCES)
        ),
    )


def undeclared(ownership: Ownership, found: Schema) -> set[str]:
    """Return the tables of which nothing is declared."""
    return found.columns.keys() - ownership.keys()


def missing_columns(ownership: Ownership, found: Schema) -> set[tuple[str, str]]:
    """Return the declared columns, of tables and of their parents, that do not exist."""
    declared = {
        place
        for table, ways in ownership.items()
        if not isinstance(ways, Common)
        for way in ways
        for place in ((table, way.column), (way.parent or table, way.key if way.parent else ""))
        if place[1]
    }
    return {(t, c) for t, c in declared if c not in found.columns.get(t, frozenset())}


async def test_every_table_is_declared_and_every_declared_column_exists(db: Database) -> None:
    found = await db.read(schema)
    assert undeclared(OWNERSHIP, found) == set()
    assert OWNERSHIP.keys() - found.columns.keys() == set()
    assert missing_columns(OWNERSHIP, found) == set()
    assert len(OWNERSHIP) == len(OUTBOX) + len(GATEWAY) > 70


async def test_a_table_without_a_declaration_is_found(db: Database) -> None:
    async def add(tx: Tx) -> Schema:
        await tx.run("create table strangers (id bigint primary key)")
        return await schema(tx)

    found = await db.write(add)
    assert undeclared(OWNERSHIP, found) == {"strangers"}
    without = {table: ways for table, ways in OWNERSHIP.items() if table != "carts"}
    assert undeclared(without, found) == {"strangers", "carts"}
    wrong = {"strangers": (Way("owner_id"), Way("id", "carts", "cart_id"))}
    assert missing_columns(wrong, found) == {("strangers", "owner_id"), ("carts", "cart_id")}


async def test_declarations_agree_with_the_schema(db: Database) -> None:
    """A column `owner_id` and a foreign key say whose a row is, and parents come first."""
    found = await db.read(schema)
    places = list(OWNERSHIP)
    for table, ways in OWNERSHIP.items():
        has_owner = "owner_id" in found.columns[table]
        if isinstance(ways, Common):
            assert not has_owner, table
            continue
        assert has_owner == (Way("owner_id") in ways), table
        keys = {(name, parent, key) for t, name, parent, key in found.references if t == table}
        assert all(
            way.parent is None
            or (way.column, way.parent, way.key) in keys
            or all(name != way.column for name, _, _ in keys)
            for way in ways
        ), table
        parents = {parent for _, parent, _ in keys} | {way.parent for way in ways if way.parent}
        assert all(places.index(parent) < places.index(table) for parent in parents), table
        assert parents.isdisjoint(UNOWNED), table


async def test_each_way_leads_to_the_rows(
    db: Database, db_url: str, tmp_path: Path, sqlite_files: SqliteFiles
) -> None:
    """All ids of the nth row of each table are the same, so each owner has one row of each."""
    (tmp_path / "template").mkdir()
    template = await sqlite_files.fresh(tmp_path / "template")
    rows = every_table.rows_for(template.removeprefix("sqlite:///"))
    await every_table.fill(db_url, rows)
    owners = [str(row["id"]) for row in rows["users"]]
    found = await db.read(shares, OWNERSHIP, owners)
    assert found == {table: [1, 1, 1, 3] for table in OWNERSHIP.keys() - UNOWNED}


@pytest.mark.slow
async def test_each_row_of_a_used_database_has_exactly_one_owner(api: RestApi) -> None:
    shops = [
        await open_shop(api, f"{name}.example", allowedOrigins=["https://pages.example"])
        for name in ("ana", "bia")
    ]
    owners = [shop.owner.user_id for shop in shops]
    async with inbox() as receiver, drain(api.db, ring()) as running:
        # Of each owner one webhook stays, and the other ends after its attempts.
        paths = [f"/{owner}/{n}" for owner in owners for n in range(2)]
        webhooks = [
            await running.webhook(receiver.url + path, "contact.created", owner=path.split("/")[1])
            for path in paths
        ]
        for shop in shops:
            await trade(shop)
        for path in paths:
            await receiver.until(1, path)
    for ended in webhooks[1::2]:
        await parking.remove(api.db, ended)
    found = await api.db.read(shares, OWNERSHIP, owners)
    for shop in shops:
        await shop.close()
    assert found.keys() >= FILLED, FILLED - found.keys()
    assert {table: n for table, n in found.items() if sum(n[:-1]) != n[-1]} == {}
    # A duty writes checkpoints; it may have run between the attempts of the two owners.
    assert {table for table, n in found.items() if not all(n)} <= {"checkpoints"}

"""Everything that has a time to live has a duty that takes it away."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import gateway
import outbox
from gateway.domain.accounts import api_keys, sessions, tokens, users
from gateway.domain.accounts.credentials import Credentials
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import idempotency
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.server.config import Retention
from gateway.server.startup import SOURCES
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upkeep.duties import BATCHES, Batches, Upkeep
from outbox import database
from outbox.clock import SystemClock
from outbox.database import times
from outbox.database.plans import by_index
from outbox.database.sql import translate
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.events import marks
from outbox.ids import Ids
from outbox.queue.state import figures
from outbox.queue.upkeep import erasure_requests
from tests.outbox.queue.upkeep.test_retention import Past
from tests.support.drain import ring
from tests.support.rows import add_webhooks, pause, webhook_id
from tests.support.waiting import until

MODES = ("force_custom_plan", "force_generic_plan")


async def buffers(tx: Tx, name: str, statement: str, args: tuple[Any, ...]) -> dict[str, int]:
    """Run `statement` under each plan mode; return its buffers by `name` and mode."""
    values = ", ".join(f"'{value}'" for value in args)
    plan = "the_" + "".join(c if c.isalnum() else "_" for c in name)
    await tx.run(f"prepare {plan} as {translate(statement, 'postgres')}")
    touched = {}
    for mode in MODES:
        await tx.run(f"set local plan_cache_mode = {mode}")
        told = await tx.one(
            f"explain (analyze, buffers, format json) execute {plan}" + f"({values})" * bool(args)
        )
        assert told is not None
        [found] = json.loads(told[0])
        top = found["Plan"]
        touched[f"{name} {mode}"] = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
        assert touched[f"{name} {mode}"] > 0, found
    return touched


Unit = Callable[..., Awaitable[Any]]
REMOVES = re.compile(r"_?(prune|purge|expire)")

# Each table is in one of the two: whoever adds one decides whether its rows have an end.
TEMPORARY = {
    "deliveries": "retention",
    "attempts": "retention",
    "events": "retention",
    "audit": "audit",
    "figures": "retention",
    "jobs": "ended-jobs",
    "imports": "ended-imports",
    "move_changes": "ended-moves",
    "event_marks": "event-marks",
    "idempotency": "idempotency",
    "tokens": "tokens",
    "connect_codes": "connect-codes",
    "sessions": "sessions",
    "first_account_links": "first-account-links",
    "api_keys": "api-keys",
    "customer_sessions": "customer-sessions",
    "customer_tokens": "customer-tokens",
    "used_nonces": "nonces",
    "mails": "given-up-mails",
    "notices": "notices",
    "order_mails": "order-mails",
    "carts": "carts",
    "coupons": "coupons",
    "quotes": "quotes",
    "orders": "orders",
    "checkouts": "checkouts",
    "review_quotas": "review-quotas",
    "cart_quotas": "cart-quotas",
    "webhooks": "webhook-secrets",
    "payment_secrets": "payment-secrets",
    "signing_keys": "signing-keys",
    "checkpoints": "checkpoints",
    "pending_ends": "dependants",
    "chain_gaps": "retention",
    "chain_ends": "retention",
    "erasures": "erasures",
}
LASTING = set(
    """
outbox_state lanes owners nodes forgotten duties sequences remainders wakes passes users tallies
counters pipelines deal_totals contacts contact_tags companies deals deal_contacts tasks activities
products product_skus product_categories invoices stores order_tokens payments stock_reservations
order_holders product_slugs product_shelves product_terms categories category_slugs category_names
reviews review_claims review_totals ebooks store_hosts customers customer_emails customer_addresses
customer_identities coupon_codes coupon_uses discount_modals modal_coupons person_erasures
import_lines import_faults
""".split()  # noqa: SIM905 - fifty names read better so
)
"""Records until they are deleted, what goes with its record, totals, and one row a webhook, an
owner or a duty."""
CONTINUING = {"imports", "jobs", "lines", "turning"}
"""Duties that take nothing away: they continue what a process has left undone."""


class Recording:
    """A database that remembers which units ran on it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.units: set[Unit] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def write(self, unit: Unit, *args: Any) -> Any:
        self.units.add(args[0] if unit is times.by_earlier else unit)
        return await self._db.write(unit, *args)


def units() -> dict[str, Unit]:
    """Every unit of both packages whose name says that it takes something away."""
    found = {}
    for package in (outbox, gateway):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith("__main__"):
                continue
            for name, what in vars(importlib.import_module(module.name)).items():
                own = inspect.iscoroutinefunction(what) and what.__module__ == module.name
                if own and REMOVES.match(name) and next(iter(inspect.signature(what).parameters)):
                    found[f"{module.name}.{name}"] = what
    return found


async def _key(tx: Tx, email: str, *ends: int | None) -> str:
    """A user with keys that end at these times; the user's id."""
    user_id = await users.add(tx, email=email, name="Ana", password_hash="-")
    for end in ends:
        text = api_keys.make(Ids())
        await api_keys.add(
            tx, owner_id=user_id, name="k", text=text, scopes=["read"], expires_at=end
        )
    return user_id


async def _everything_old(db: Database) -> None:
    """One row of each kind whose time is over."""
    past = Past(db)
    user_id = await db.write(_key, "ana@example.com", 1)
    await db.write(add_webhooks, 1, 2)
    await db.write(pause, 2)
    await past.event(31)
    await past.delivery(62, "delivered", 31)
    await past.delivery(62, "ready", webhook=2)

    async def rows(tx: Tx) -> None:
        await tx.run(
            "insert into tokens (digest, owner_id, created_at, expires_at) values ($1, $2, 1, 1)",
            b"t", user_id,
        )  # fmt: skip
        await sessions.start(tx, user_id, "token", lifetime=-DAY, address="", agent="")
        await tx.run(
            "insert into first_account_links (digest, created_at, expires_at) values ($1, 1, 1)",
            b"l",
        )
        await tx.run(
            "insert into connect_codes (digest, owner_id, app, app_name, redirect_uri, challenge,"
            " url, events, created_at, expires_at)"
            " values ($1, $2, 'app', 'App', '', '', '', '[]', 1, 1)",
            b"c", user_id,
        )  # fmt: skip
        await tx.run(
            "insert into idempotency (owner_id, key, operation, fingerprint, created_at)"
            " values ($1, 'k', 'POST /api/contacts', $2, 1)",
            user_id, b"f",
        )  # fmt: skip
        await tx.run(
            "insert into pending_ends (owner_id, record_id, noun) values ($1, $2, 'contact')",
            user_id, "0" * 24,
        )  # fmt: skip
        customer_id = tx.new_id()
        await tx.run(
            "insert into customers (id, owner_id, version, created_at, store_id, name,"
            " email_verified, accepts_marketing, folded, sort_name)"
            " values ($1, $2, 1, 1, $2, 'Ana', false, false, '', '')",
            customer_id, user_id,
        )  # fmt: skip
        await tx.run(
            "insert into customer_sessions (id, customer_id, created_at, expires_at)"
            " values ('s', $1, 1, 1)",
            customer_id,
        )
        await tx.run(
            "insert into customer_tokens (digest, customer_id, kind, created_at, expires_at)"
            " values ($1, $2, 'reset', 1, 1)",
            b"t", customer_id,
        )  # fmt: skip
        await tx.run(
            "insert into used_nonces (store_id, digest, expires_at) values ('s', $1, 1)", b"n"
        )
        await tx.run(
            "insert into jobs (id, owner_id, webhook_id, user_id, kind, state, ends, since_at,"
            " until_at, place, last_seq, rate, total, created_at, paced_at, finished_at)"
            " values ('j', $1, $2, $1, 'backfill', 'done', '[]', 1, 1, 1, 1, 1, 1, 1, 1, 1)",
            user_id, webhook_id(1),
        )  # fmt: skip
        await tx.run(
            "insert into imports (id, owner_id, plural, state, dry_run, held, lines_left, headings,"
            " fields, encoding, created_at, paced_at, finished_at)"
            " values ('i', $1, 'contacts', 'done', $2, $2, $2, '[]', '[]', 'utf-8', 1, 1, 1)",
            user_id, False,
        )  # fmt: skip
        await tx.run(
            "insert into move_changes (mover, name, key) values ($1, 'contacts', '[]')", user_id
        )
        await figures.add(tx, figures.STEP, {(user_id, 0, "event"): [1] * len(figures.SUMS)})
        await marks.store(tx, -2 * marks.BLOCK, b"", b"")
        await tx.run("insert into review_quotas (customer_id, day, n) values ('c', 1, 1)")
        await tx.run("insert into cart_quotas (holder, began_at, carts) values ('c', 1, 1)")
        await tx.run(
            "insert into mails (id, customer_id, kind, created_at, attempts, failed_at)"
            " values ('m', $1, 'reset', 1, 7, 1)",
            customer_id,
        )
        await tx.run(
            "insert into notices (id, owner_id, webhook_id, kind, reason, created_at, attempts)"
            " values ('n', $1, 'w', 'failing', 'timeout', 1, 1)",
            user_id,
        )
        await tx.run(
            "insert into order_mails (id, owner_id, order_id, contact_id, mailbox, kind,"
            " created_at, attempts) values ('m', $1, 'o', 'c', $2, 'order_paid', 1, 1)",
            user_id, b"m",
        )  # fmt: skip
        await tx.run(
            "insert into carts (id, owner_id, store_id, digest, state, lines, created_at,"
            " touched_at, expires_at) values ($1, $2, $1, $3, 'active', '[]', 1, 1, 1)",
            "1" * 24, user_id, b"c",
        )  # fmt: skip
        await tx.run(
            "insert into coupons (id, owner_id, version, created_at, store_id, code, ends_at,"
            " active, uses, modal_id, folded) values ($1, $2, 1, 1, $1, 'C', 1, true, 0, $1, 'c')",
            "1" * 24, user_id,
        )  # fmt: skip
        await tx.run(
            "insert into audit (owner_id, id, actor, action, resource, fields)"
            " values ($1, $2, 'system', 'deleted', 'contact', '')",
            user_id, "0" * 24,
        )  # fmt: skip
        await tx.run(
            "insert into checkouts (store_id, visitor, key, fingerprint, order_id, sealed,"
            " created_at) values ('s', 'v', 'k', $1, 'o', $1, 1)",
            b"x",
        )
        await tx.run(
            "insert into chain_gaps (webhook_id, first_place, last_place, digest)"
            " values ('gone', 1, 9, $1)",
            b"d",
        )
        await tx.run("insert into chain_ends (webhook_id, place, digest) values ('gone', 9, 'd')")
        for number in (1, 2):
            # The last of an owner stays.
            await tx.run(
                "insert into checkpoints (owner_id, number, created_at, key_id, webhooks,"
                " first_webhook, ends, body) values ('o', $1, 1, 'k', 1, 'w', $2, '')",
                number, b"e",
            )  # fmt: skip
        await tx.run(
            "insert into signing_keys (id, public_key, private_key, created_at, ends_at)"
            " values ('k', $1, $1, 1, 1)",
            b"k",
        )
        await erasure_requests.request(tx, user_id, ["record"])
        await tx.run(
            "update webhooks set old_secret = secret, old_secret_until = 1 where id = $1",
            webhook_id(1),
        )
        values = {"hostname": "old.example", "name": "Old"}
        store = await stores.create(
            tx, Actor(user_id, "system"), check(STORES, values, creating=True)
        )
        await tx.run(
            "insert into payment_secrets (store_id, secret, old_secret, old_secret_until)"
            " values ($1, $2, $2, 1)",
            store.id, b"s",
        )  # fmt: skip

    await db.write(rows)


OLD = {
    "old secrets": "webhooks where old_secret is not null",
    "old payment secrets": "payment_secrets where old_secret is not null",
    "old private keys": "signing_keys where private_key is not null",
    "old checkpoints": "checkpoints where number = 1 and owner_id = 'o'",
}


async def _left(tx: Tx) -> dict[str, int]:
    left = {}
    for name, rows in (dict(zip(TEMPORARY, TEMPORARY, strict=True)) | OLD).items():
        row = await tx.one(f"select count(*) as n from {rows}")
        assert row is not None
        left[name] = row["n"]
    return left


async def _run_all(db: Database) -> tuple[Upkeep, Metrics, set[Unit]]:
    """Look once, as the scheduler does, and wait for all that began."""
    recording: Any = Recording(db)
    db.observer = metrics = Metrics(clock=db.clock, webhook_series=5, build={"version": "1"})
    upkeep = Upkeep(recording, metrics, Credentials(db, metrics), None, Retention(), ring=ring())
    leadership = upkeep.duties.leadership
    leadership.start()
    await until(lambda: leadership.leads)
    await upkeep.duties.look()
    await upkeep.duties.idle()
    await upkeep.duties.stop()
    return upkeep, metrics, recording.units


async def test_whatever_is_past_its_time_is_gone_after_one_round(db: Database) -> None:
    await _everything_old(db)
    before = await db.read(_left)
    assert all(before[table] for table in before if table not in ("quotes", "orders"))
    upkeep, metrics, ran = await _run_all(db)
    # Each unit that takes something away is run by a duty.
    assert len(units()) >= 10
    assert {name for name, unit in units().items() if unit not in ran} == set()
    after = await db.read(_left)
    value = metrics.registry.get_sample_value
    others = ("pending_ends", "chain_gaps", "chain_ends", "erasures")
    for table in TEMPORARY.keys() - {
        # Entries of now stay in `audit`; what these duties delete is noted there.
        "quotes", "orders", "webhooks", "audit", "payment_secrets", "signing_keys", "checkpoints",
        "deliveries", "attempts", *others,
    }:  # fmt: skip
        assert after[table] == 0, table
        labels = {"table": table}
        assert value("retention_purged_total", labels) == 1, table
        assert value("retention_last_success_timestamp_seconds", labels), table
    for name in (*OLD, *others):
        assert after[name] == 0, name
    # The parked one has just ended, and is kept in the log as such.
    assert (after["deliveries"], after["attempts"]) == (1, 1)
    assert value("webhook_deliveries_finished_total", {"result": "cancelled"}) == 1
    ending = {"left-moves"} if db.engine == "postgres" else set()
    assert set(TEMPORARY.values()) | CONTINUING | ending == set(upkeep.duties.names)


async def test_a_key_that_ended_lately_is_still_told_as_such(db: Database) -> None:
    await db.write(_key, "ana@example.com", db.clock.wall() - api_keys.KEPT + DAY, None)
    assert await db.write(api_keys.purge, 10) == 0


def test_every_table_is_declared_to_last_or_to_have_an_end() -> None:
    text = "\n".join(
        path.read_text() for _, folder in SOURCES for path in sorted(folder.glob("*.sql"))
    )
    # What SQLite cannot change is copied into a table that takes the name.
    renamed = dict(re.findall(r"^alter table (newer_\w+) rename to (\w+);", text, re.M))
    found = re.findall(r"^create table (\w+) \((.*?)^\)", text, re.M | re.S)
    tables = {renamed.get(name, name): columns for name, columns in found}
    assert not TEMPORARY.keys() & LASTING
    assert tables.keys() == TEMPORARY.keys() | LASTING
    ending = re.compile(r"^\s+(\w+_until|expires_at|lapses_at)\b", re.M)
    # A time for a lane to wait for, and a lease that the drain looks after.
    assert {name for name in LASTING if ending.search(tables[name])} == {"lanes", "nodes"}
    assert all(0 < batches.most <= 500 for batches in BATCHES)


async def _grown(tx: Tx) -> dict[str, int]:
    """What the statements touch that remove some of many rows, told that there are none."""
    for table in ("idempotency", "tokens"):
        await tx.run(f"alter table {table} set (autovacuum_enabled = off)")
        await tx.run(f"analyze {table}")
    user_id = await users.add(tx, email="a@example.com", name="Ana", password_hash="-")
    await tx.run(
        "insert into idempotency (owner_id, key, operation, fingerprint, created_at)"
        " select $1, 'k' || n, 'POST /', '', n from generate_series(1, 50000) as n",
        user_id,
    )
    await tx.run(
        "insert into tokens (digest, owner_id, created_at, expires_at)"
        " select decode(md5(cast(n as text)), 'hex'), $1, 1, n from generate_series(1, 50000) as n",
        user_id,
    )
    await by_index(tx)
    return await buffers(tx, "answers", idempotency.PRUNE, (60_000, 10)) | await buffers(
        tx, "tokens", tokens.PURGE, (60_000, 10)
    )


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_what_is_removed_is_reached_by_an_index(db: Database) -> None:
    touched = await db.write(_grown)
    assert max(touched.values()) <= 200, touched


class Ahead(SystemClock):
    """A clock whose wall time tests move."""

    offset = 0

    def wall(self) -> int:
        return super().wall() + self.offset


@pytest.mark.parametrize("hours", [-48, 48])
async def test_what_is_deleted_is_past_its_time_by_both_clocks(db_url: str, hours: int) -> None:
    clock = Ahead()
    db = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    moments: list[int] = []

    async def unit(tx: Tx, limit: int) -> int:
        moments.append(tx.now)
        return 0

    metrics = Metrics(clock=clock, webhook_series=5, build={"version": "1"})
    upkeep = Upkeep(db, metrics, Credentials(db, metrics), None, Retention())
    right = clock.wall()
    clock.offset = hours * 3_600_000_000
    await upkeep.run_all(Batches("mails", 1.0, unit, 5, "mails"))
    expected = right + min(clock.offset, 0)
    assert abs(moments[0] - expected) < 60_000_000
    # Events that a unit makes have the wall time.
    await upkeep.run_all(Batches("quotes", 1.0, unit, 5))
    assert abs(moments[1] - clock.wall()) < 60_000_000
    await db.close()

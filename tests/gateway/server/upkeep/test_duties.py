"""Everything that has a time to live has a duty that takes it away."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

import gateway
import outbox
from gateway.app import build_shared, build_watched, build_work
from gateway.domain.accounts import api_keys, sessions, tokens, users
from gateway.domain.accounts.credentials import Credentials
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import idempotency
from gateway.records.audit import Actor
from gateway.records.record import check
from gateway.server.config import Cell, Config, Images, Retention, Storefront
from gateway.server.parts import PARTS
from gateway.server.startup import SOURCES
from gateway.server.telemetry.metrics import Metrics
from gateway.server.upkeep.web_duties import BATCHES, Batches, Further, Upkeep
from outbox import database
from outbox.database import times
from outbox.database.index_plans import by_index
from outbox.database.sql import insert, translate
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.events import event_index
from outbox.ids import Ids
from outbox.queue.state import attempt_counts
from outbox.queue.upkeep import erasure_requests, pause_mark
from tests.outbox.queue.upkeep.test_retention import Past
from tests.support.clocks import Wall
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
    "account_tokens": "account-tokens",
    "reset_requests": "reset-requests",
    "api_keys": "api-keys",
    "customer_sessions": "customer-sessions",
    "customer_tokens": "customer-tokens",
    "used_nonces": "nonces",
    "queued_mails": "queued-mails",
    "document_links": "document-links",
    "notices": "notices",
    "carts": "carts",
    "coupons": "coupons",
    "quotes": "quotes",
    "orders": "orders",
    "checkouts": "checkouts",
    "review_quotas": "review-quotas",
    "cart_quotas": "cart-quotas",
    "webhooks": "webhook-secrets",
    "payment_secrets": "payment-secrets",
    "freed_hosts": "freed-hostnames",
    "signing_keys": "signing-keys",
    "checkpoints": "checkpoints",
    "pending_ends": "dependants",
    "chain_gaps": "retention",
    "chain_ends": "retention",
    "deleted_webhooks": "retention",
    "erasures": "erasures",
}
LASTING = set(
    """
outbox_state lanes owners nodes forgotten duties sequences remainders wakes passes users tallies
counters pipelines company_settings deal_totals contacts contact_tags companies deals deal_contacts
tasks activities products product_skus product_categories invoices stores order_tokens payments
stock_reservations
order_holders product_slugs product_shelves product_terms categories category_slugs category_names
reviews review_claims review_totals ebooks store_hosts customers customer_emails customer_addresses
customer_identities coupon_codes coupon_uses discount_modals modal_coupons person_erasures
two_factors recovery_codes import_lines import_faults import_faulty_lines import_keys imported_ids
images product_images
store_origins reserved_hosts
""".split()  # noqa: SIM905 - fifty names read better so
)
"""Records until they are deleted, what goes with its record, totals, and one row a webhook, an
owner or a duty."""
CONTINUING = {"imports", "jobs", "lines", "turning"}
"""Duties that take nothing away: they continue what a process has left undone."""
PAUSABLE = {"quotes", "orders", "mails", "images", "hostnames", "cell-names", "cell-register"}
"""Duties that mail, ask others, change what installations share, or end what people are told of."""


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
        await api_keys.add(tx, user_id, api_keys.KeyDraft("k", text, ["read"], end))
    return user_id


BEGUN = {"created_at": 1, "expires_at": 1}


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
        customer_id = tx.new_id()
        await sessions.start(
            tx, CheckedAccount(user_id, 1, None), "token", lifetime=-DAY, address="", agent=""
        )
        old: Sequence[tuple[str, dict[str, Any]]] = (
            ("tokens", {"digest": b"t", "owner_id": user_id} | BEGUN),
            ("first_account_links", {"digest": b"l"} | BEGUN),
            ("connect_codes", {"digest": b"c", "owner_id": user_id, "app": "app",
             "app_name": "App", "redirect_uri": "", "challenge": "", "url": "", "events": "[]",
             **BEGUN}),
            ("idempotency", {"owner_id": user_id, "key": "k", "operation": "POST /api/contacts",
             "fingerprint": b"f", "created_at": 1}),
            ("pending_ends", {"owner_id": user_id, "record_id": "0" * 24, "noun": "contact"}),
            ("customers", {"id": customer_id, "owner_id": user_id, "version": 1, "created_at": 1,
             "store_id": user_id, "name": "Ana", "email_verified": False,
             "accepts_marketing": False, "folded": "", "sort_name": ""}),
            ("account_tokens", {"digest": b"t", "owner_id": user_id, "kind": "reset"} | BEGUN),
            ("queued_mails", {"id": "m", "owner_id": user_id, "kind": "password_changed",
             "facts": "{}", "created_at": 1, "attempts": 1, "expires_at": 1}),
            ("document_links", {"digest": b"l", "owner_id": user_id, "resource": "quote",
             "record_id": "q"} | BEGUN),
            ("reset_requests", {"id": "r", "email": "a@example.com", "created_at": 1}),
            ("customer_sessions", {"id": "s", "customer_id": customer_id} | BEGUN),
            ("customer_tokens", {"digest": b"t", "customer_id": customer_id, "kind": "reset"}
             | BEGUN),
            ("used_nonces", {"store_id": "s", "digest": b"n", "expires_at": 1}),
            ("jobs", {"id": "j", "owner_id": user_id, "webhook_id": webhook_id(1),
             "user_id": user_id, "kind": "backfill", "state": "done", "ends": "[]", "since_at": 1,
             "until_at": 1, "place": 1, "last_seq": 1, "rate": 1, "total": 1, "created_at": 1,
             "paced_at": 1, "finished_at": 1}),
            ("imports", {"id": "i", "owner_id": user_id, "plural": "contacts", "state": "done",
             "dry_run": False, "held": False, "lines_left": False, "headings": "[]",
             "fields": "[]", "encoding": "utf-8", "created_at": 1, "paced_at": 1,
             "finished_at": 1}),
            ("move_changes", {"mover": user_id, "name": "contacts", "key": "[]"}),
            ("review_quotas", {"customer_id": "c", "day": 1, "n": 1}),
            ("cart_quotas", {"holder": "c", "began_at": 1, "carts": 1}),
            ("notices", {"id": "n", "owner_id": user_id, "webhook_id": "w", "kind": "failing",
             "reason": "timeout", "created_at": 1, "attempts": 1}),
            ("carts", {"id": "1" * 24, "owner_id": user_id, "store_id": "1" * 24, "digest": b"c",
             "state": "active", "lines": "[]", "touched_at": 1} | BEGUN),
            ("coupons", {"id": "1" * 24, "owner_id": user_id, "version": 1, "created_at": 1,
             "store_id": "1" * 24, "code": "C", "ends_at": 1, "active": True, "uses": 0,
             "modal_id": "1" * 24, "folded": "c"}),
            ("audit", {"owner_id": user_id, "id": "0" * 24, "actor": "system",
             "action": "deleted", "resource": "contact", "fields": ""}),
            ("checkouts", {"store_id": "s", "visitor": "v", "key": "k", "fingerprint": b"x",
             "order_id": "o", "sealed": b"x", "created_at": 1}),
            ("chain_gaps", {"webhook_id": "gone", "first_place": 1, "last_place": 9,
             "digest": b"d"}),
            ("chain_ends", {"webhook_id": "gone", "place": 9, "digest": "d"}),
            ("deleted_webhooks", {"id": "gone", "owner_id": "o", "url": "u", "deleted_at": 1,
              "cancelled": 0}),
            ("freed_hosts", {"value": "gone.example", "owner_id": "o", "free_at": 1}),
            # The last of an owner stays.
            *(("checkpoints", {"owner_id": "o", "number": number, "created_at": 1, "key_id": "k",
               "webhooks": 1, "first_webhook": "w", "ends": b"e", "body": ""})
              for number in (1, 2)),
            ("signing_keys", {"id": "k", "public_key": b"k", "private_key": b"k", "created_at": 1,
             "ends_at": 1}),
        )  # fmt: skip
        for table, row in old:
            await insert(tx, table, tuple(row), [tuple(row.values())])
        await attempt_counts.add(
            tx, attempt_counts.STEP, {(user_id, 0, "event"): [1] * len(attempt_counts.SUMS)}
        )
        await event_index.store(tx, -2 * event_index.BLOCK, b"", b"")
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
    further = Further(ring=ring())
    upkeep = Upkeep(recording, metrics, Credentials(db, metrics), None, Retention(), further)
    leadership = upkeep.duties.leadership
    leadership.start()
    await until(lambda: leadership.leads)
    await upkeep.duties.look()
    await upkeep.duties.idle()
    await upkeep.duties.stop()
    return upkeep, metrics, recording.units


@pytest.mark.slow
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
    others = ("pending_ends", "chain_gaps", "chain_ends", "deleted_webhooks", "erasures")
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


def test_every_table_is_declared_to_last_or_to_have_an_end() -> None:
    text = "\n".join(
        path.read_text() for _, folder in SOURCES for path in sorted(folder.glob("*.sql"))
    )
    # What SQLite cannot change is copied into a table that takes the name.
    renamed = dict(re.findall(r"^alter table (newer_\w+) rename to (\w+);", text, re.M))
    found = re.findall(r"^create table (\w+) \((.*?)^\)", text, re.M | re.S)
    dropped = {*re.findall(r"^drop table (\w+);", text, re.M)} - {*renamed.values()}
    tables = {renamed.get(name, name): columns for name, columns in found if name not in dropped}
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
    return await buffers(tx, "answers", idempotency.EXPIRY.text, (60_000, 10)) | await buffers(
        tx, "tokens", tokens.EXPIRY.text, (60_000, 10)
    )


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_what_is_removed_is_reached_by_an_index(db: Database) -> None:
    touched = await db.write(_grown)
    assert max(touched.values()) <= 200, touched


@pytest.mark.parametrize("hours", [-48, 48])
async def test_what_is_deleted_is_past_its_time_by_both_clocks(db_url: str, hours: int) -> None:
    clock = Wall()
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


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_every_duty_is_declared_to_rest_in_a_paused_database_or_to_stay_inside_of_it(
    db: Database, tmp_path: Path
) -> None:
    """Whoever adds a duty decides whether others notice what it does."""
    config = msgspec.structs.replace(
        Config(), images=Images(folder=str(tmp_path)), storefront=Storefront(verify_hostnames=True),
        cell=Cell(name="one", directory="postgresql://127.0.0.1:1/none"),
    )  # fmt: skip
    await db.write(pause_mark.pause)
    async with AsyncExitStack() as stack:
        watched = build_watched(config, db, ring(), stack)
        shared = build_shared(config, watched, PARTS, stack)
        duties = build_work(config, watched, shared, ring(), "api", PARTS).upkeep.duties
        duties.leadership.start()
        with capture_logs() as lines:
            await duties.look()
            await duties.idle()
        await duties.stop()
    [resting] = [line["duties"] for line in lines if line["event"] == "database_paused"]
    assert set(resting) == PAUSABLE
    assert set(duties.names) == PAUSABLE | set(TEMPORARY.values()) | CONTINUING

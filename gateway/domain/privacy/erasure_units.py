"""Erases the records of a person, in units of bounded work.

Each unit takes records that still point to the person, and unlinks or deletes them, so what is left
to do follows from the records themselves: after a crash the next unit goes on. The contact goes
last, when nothing points to it. Whoever links a record to it meanwhile either comes before that,
and is found, or is refused.

A unit searches no text. It is told what a search outside its transaction has found, and takes that
where the record still has the version that was searched; it returns the records to search next.

It is one module because each kind of record is taken out with the same unit and its bound.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import json, structs

from gateway.domain import record_origins
from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts import contacts, person_erasures
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy import knowledge, waiting_lines
from gateway.domain.privacy.searches import Found, Key
from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.campaigns.modals import ISSUING
from gateway.domain.storefront.privacy.customer_erasure import (
    ERASED_EMAIL,
    anonymise,
    erase_account,
)
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import statements, store
from gateway.records.audit import Actor
from gateway.records.record import Record, Row
from gateway.records.resource import Drop, Remove, Resource, Unset
from gateway.records.values import emails
from gateway.records.values.emails import fold_email, folds
from gateway.records.values.strictjson import dumps
from outbox.database.sql import items
from outbox.database.transaction import Tx
from outbox.queue.upkeep import erasure_requests

ROWS = 50
"""Records that one unit erases or changes."""
CHANGED = "person"
"""What Tx.changed says of an erased person, before the id of the owner."""
NOTHING: Mapping[Key, Found] = {}

_ORDERS_OF = "select id from orders where owner_id = $1 and customer_id = $2 limit $3"
_ORDERS_WITH = "select id from orders where owner_id = $1 and email_folded = $2 limit $3"
_GUESTS_WITH = """
select id from orders
where owner_id = $1 and email_folded = $2 and store_id = $3 and customer_id is null limit $4
"""
_CONTACTS_WITH = """
select id from contacts where owner_id = $1 and email_folded = $2 limit $3
"""
_CLIENTS_WITH = """
select e.record_id as id from stores s
join customer_emails e on e.store_id = s.id and e.value = $2
where s.owner_id = $1 limit $3
"""
_MAILS = "select count(*) as n from queued_mails where customer_id = $1"
_DROP_MAILS = "delete from queued_mails where owner_id = $1 and mailbox = $2"
_ORDER_MAILS = "select count(*) as n from queued_mails where order_id = $1"
_MODALS = f"update modal_coupons set holder = $3 where modal_id in {ISSUING} and holder = $2"


class _Unit:
    """One unit of an erasure: what it may still do, and what it has done."""

    def __init__(self, tx: Tx, erasure: Erasure, findings: Mapping[Key, Found]) -> None:
        assert erasure.person is not None
        self.tx = tx
        self.erasure = erasure
        self.person = erasure.person
        self.found = findings
        self.wanted: Sequence[Key] = ()
        self.actor = Actor(erasure.owner_id, "system", cause="erasure")
        self.left = erasure.part(ROWS)
        self.erased = Counter[str]()
        self.kept = Counter[str]()

    def learn(self, **found: Iterable[str | None]) -> None:
        """Add to what identifies the person."""
        self.person = knowledge.more(self.person, **found)

    def searched(self, record: Record) -> Found | None:
        """Return what was found in a record, or None if it changed since or was not searched."""
        found = self.found.get((record.resource.table, record.id))
        return found if found is not None and found.version == record.version else None

    def want(self, resource: Resource, ids: Iterable[str]) -> None:
        """Note records to search before the next unit."""
        self.wanted = [(resource.table, one) for one in ids]


async def step(tx: Tx, erasure_id: str, findings: Mapping[Key, Found] = NOTHING) -> Sequence[Key]:
    """Erase some records of a person; return those to search before the next unit."""
    erasure = await person_erasures.one(tx, erasure_id, lock=True)
    if erasure is None or erasure.person is None or erasure.stage != "records":
        return ()
    place = erasure.place
    if erasure.person.wide:
        # First: an import locks its job before the contacts of its lines.
        # A line may name the contact by its id alone, which would then be a new contact.
        came_from = await record_origins.forget(tx, erasure.owner_id, erasure.record_id)
        place = waiting_lines.with_ids(place, came_from)
        if await waiting_lines.any_left(tx, erasure.owner_id, place):
            await person_erasures.save(
                tx, erasure, stage="lines", person=erasure.person, place=place
            )
            return ()
    unit = _Unit(tx, erasure, findings)
    over = await _records(unit)
    tx.changed.add(f"{CHANGED}:{erasure.owner_id}")
    await person_erasures.save(
        tx, erasure, stage="responses" if over else "records", person=unit.person,
        place="" if over else place, erased=unit.erased, kept=unit.kept,
    )  # fmt: skip
    return unit.wanted


def owners_of(changed: Collection[str]) -> list[str]:
    """Return the owners who erased a person, of what commits changed."""
    marks = (one.partition(":") for one in changed)
    return [owner_id for word, _, owner_id in marks if word == CHANGED]


async def _records(unit: _Unit) -> bool:
    """Erase records; return whether none is left."""
    while unit.left > 0 and unit.person.left:
        record_id = unit.person.left[0]
        erase = _contact if record_id in unit.person.contacts else _client
        if not await erase(unit, record_id):
            return False
        rest = tuple(left_id for left_id in unit.person.left if left_id != record_id)
        unit.person = structs.replace(unit.person, left=rest)
    if unit.left <= 0:
        return False
    return await (_others if unit.person.wide else _guests)(unit)


async def _contact(unit: _Unit, contact_id: str) -> bool:
    """Erase a contact; return False when records that point to it are left."""
    tx, owner_id = unit.tx, unit.erasure.owner_id
    if not await _dependants(unit, CONTACTS, contact_id):
        return False
    row = await store.fetch(tx, CONTACTS, contact_id, lock=True)
    if row is not None:
        pointing = await tx.one(statements.dependants(CONTACTS), owner_id, contact_id, 1)
        if pointing is not None and pointing["n"]:
            # Linked before the lock.
            return False
        _know(unit, row, CONTACTS)
        unit.erased["contacts"] += 1
    unit.left -= 1
    await contacts.erase(tx, unit.actor, contact_id, unit.erasure.id)
    return True


async def _client(unit: _Unit, customer_id: str) -> bool:
    """Erase an account of a store; return False when records that point to it are left."""
    tx = unit.tx
    if not await _dependants(unit, CUSTOMERS, customer_id):
        return False
    rows = await tx.all(_ORDERS_OF, unit.erasure.owner_id, customer_id, unit.left)
    if not await _orders(unit, [row["id"] for row in rows]):
        return False
    customer = await store.fetch(tx, CUSTOMERS, customer_id, lock=True)
    if customer is None:
        return True
    if unit.left <= 0 or await tx.one(_ORDERS_OF, unit.erasure.owner_id, customer_id, 1):
        return False
    _know(unit, customer, CUSTOMERS)
    for kind in ("addresses", "sessions", "identities"):
        table = f"customer_{kind}"
        sql = f"select count(*) as n from {table} where customer_id = $1"
        had = await tx.one(sql, customer_id)
        unit.erased[kind] += int(had["n"]) if had else 0
    mails = await tx.one(_MAILS, customer_id)
    unit.erased["mails"] += int(mails["n"]) if mails else 0
    unit.erased["clients"] += 1
    unit.left -= 1
    await erase_account(tx, unit.actor, Record(CUSTOMERS, customer))
    return True


def _know(unit: _Unit, row: Row, resource: Resource) -> None:
    """Learn what a contact or an account says of the person."""
    record = Record(resource, row)
    unit.learn(aliases=[record["email"]], names=[record["name"]], phones=[record["phone"]])


async def _dependants(unit: _Unit, resource: Resource, record_id: str) -> bool:
    """Take the person out of records that point to the contact or account; return if all are."""
    tx, owner_id = unit.tx, unit.erasure.owner_id
    for cascade in resource.cascades:
        rows = await tx.all(
            statements.some_dependants(cascade), owner_id, record_id, max(unit.left, 1)
        )
        of = BY_TABLE[cascade.table]
        if isinstance(cascade, Remove):
            ids = items([row[0] for row in rows])
            gone = await tx.all(
                statements.remove_these(cascade.table, cascade.column), ids, record_id
            )
            by_slot = Counter(store.slot(row[0]) for row in gone)
            store.tally(tx, owner_id, cascade.table, {s: -n for s, n in by_slot.items()})
            unit.erased[of.plural] += len(gone)
            unit.left -= len(gone)
        else:
            for place, row in enumerate(rows):
                if not await _dependant(unit, cascade, of, row[0], record_id):
                    unit.want(of, (one[0] for one in rows[place:]))
                    return False
                if unit.left <= 0:
                    break
        if unit.left <= 0:
            return False
    return True


async def _dependant(
    unit: _Unit, cascade: Unset | Drop, resource: Resource, dependant_id: str, record_id: str
) -> bool:
    """Take the person out of a record that points to it; return False to search it first."""
    if resource is ORDERS:
        return await _order(unit, dependant_id)
    row = await store.fetch(unit.tx, resource, dependant_id, lock=True)
    if row is None:
        return True
    record = Record(resource, row)
    if isinstance(cascade, Drop):
        listed: list[str] = json.decode(record[cascade.column])
        unlinked: dict[str, Any] = {
            cascade.column: dumps([listed_id for listed_id in listed if listed_id != record_id])
        }
    else:
        unlinked = dict.fromkeys((cascade.column, *cascade.also))
    redacted: Mapping[str, Any] = {}
    if resource is CUSTOMERS:
        if dependant_id not in unit.person.clients:
            unit.learn(clients=[dependant_id], left=[dependant_id])
    else:
        finding = unit.searched(record)
        if finding is None:
            return False
        if finding.named:
            event_types = [f"{resource.noun}.deleted"]
            await erasure_requests.request(
                unit.tx, record.owner_id, [record.id], event_types, unit.erasure.id
            )
        redacted = finding.changes
        unit.kept[resource.plural] += 1
    unit.left -= 1
    await store.update(unit.tx, resource, row, {**unlinked, **redacted})
    return True


async def _orders(unit: _Unit, ids: Sequence[str]) -> bool:
    """Take the person out of orders; return False when some must be searched first."""
    for place, order_id in enumerate(ids):
        if not await _order(unit, order_id):
            unit.want(ORDERS, ids[place:])
            return False
    return True


async def _order(unit: _Unit, order_id: str) -> bool:
    """Take the person out of an order; return False to search it first."""
    row = await store.fetch(unit.tx, ORDERS, order_id, lock=True)
    if row is None:
        return True
    order = Record(ORDERS, row)
    finding = unit.searched(order)
    if finding is None:
        return False
    unit.learn(names=[order["name"]], phones=[order["phone"]])
    mails = await unit.tx.one(_ORDER_MAILS, order_id)
    await anonymise(unit.tx, unit.actor, order_id, unit.erasure.id, lambda _: finding.changes)
    unit.erased["mails"] += int(mails["n"]) if mails else 0
    unit.kept["orders"] += 1
    unit.left -= 1
    return True


async def _guests(unit: _Unit) -> bool:
    """Take the person out of guest orders of one store; return whether none is left."""
    for email in unit.person.emails if unit.person.store else ():
        which = (unit.erasure.owner_id, fold_email(email), unit.person.store, unit.left)
        rows = await unit.tx.all(_GUESTS_WITH, *which)
        if not await _orders(unit, [row["id"] for row in rows]) or unit.left <= 0:
            return False
    return True


async def _others(unit: _Unit) -> bool:
    """Find what else of the owner has an email of the person; return whether nothing is left."""
    tx, owner_id = unit.tx, unit.erasure.owner_id
    for email in unit.person.emails:
        folded = fold_email(email)
        if email == ERASED_EMAIL:
            continue
        ids = [row["id"] for row in await tx.all(_CONTACTS_WITH, owner_id, folded, ROWS)]
        if ids:
            unit.learn(contacts=ids, left=ids)
            return False
        for one in folds(email):
            ids = [row["id"] for row in await tx.all(_CLIENTS_WITH, owner_id, one, ROWS)]
            if ids:
                unit.learn(clients=ids, left=ids)
                return False
        rows = await tx.all(_ORDERS_WITH, owner_id, folded, unit.left)
        if not await _orders(unit, [row["id"] for row in rows]) or unit.left <= 0:
            return False
        mailbox, _ = emails.holders(email)
        unit.erased["mails"] += await tx.run(_DROP_MAILS, owner_id, mailbox)
        for holder in set(emails.holders(email)):
            nobody = hashlib.sha256(tx.new_id().encode()).digest()
            unit.erased["coupons"] += await tx.run(_MODALS, owner_id, holder, nobody)
    return True

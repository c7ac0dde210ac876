"""Erases the records and the stored responses of a person, in units of bounded work.

Each unit takes records that still point to the person, and unlinks or deletes them, so what is left
to do follows from the records themselves: after a crash the next unit goes on. The contact goes
last, when nothing points to it. Whoever links a record to it meanwhile either comes before that,
and is found, or is refused.

It is one module because each kind of record is taken out with the same unit and its bound.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import json, structs

from gateway.domain import import_lines, origins
from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts import contacts, person_erasures
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Erasure, Person
from gateway.domain.privacy import redaction, stored_responses
from gateway.domain.privacy.traces import Traces
from gateway.domain.sales import counted_emails
from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.privacy.erasure import ERASED_EMAIL, anonymise, erase_account
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import statements, store
from gateway.records.access import Actor
from gateway.records.record import Record, Row
from gateway.records.resource import Drop, Remove, Resource, Unset
from gateway.records.values.emails import fold_email, folds, spellings
from gateway.records.values.strictjson import dumps
from outbox.database.sql import items
from outbox.database.transaction import Tx
from outbox.queue.upkeep import erasure_requests

ROWS = 50
"""Records that one unit erases or changes."""
CHARACTERS = 20_000
"""Searching so many characters for the person counts as a record."""
EVENTS = 50
"""Events of a record, and responses to them, that are searched for the person."""
MOST_KNOWN = 50
"""Names, phones or emails by which a person is recognised in texts."""
WORDS = ("aliases", "names", "phones")
CHANGED = "person"
"""What Tx.changed says of an erased person, before the id of the owner."""

_ORDERS_OF = "select id from orders where owner_id = $1 and customer_id = $2 limit $3"
_ORDERS_WITH = "select id from orders where owner_id = $1 and email_folded = $2 limit $3"
_CONTACTS_WITH = """
select id from contacts where owner_id = $1 and email_folded = $2 limit $3
"""
_CLIENTS_WITH = """
select e.record_id as id from stores s
join customer_emails e on e.store_id = s.id and e.value = $2
where s.owner_id = $1 limit $3
"""
_MAILS = "select count(*) as n from mails where customer_id = $1"
_ORDER_MAILS = "select count(*) as n from order_mails where order_id = $1"
_MODALS = """
update modal_coupons set holder = $3
where modal_id in (select id from discount_modals where owner_id = $1) and holder = $2
"""


class _Unit:
    """One unit of an erasure: what it may still do, and what it has done."""

    def __init__(self, tx: Tx, erasure: Erasure, person: Person) -> None:
        self.tx = tx
        self.erasure = erasure
        self.person = person
        self.traces = Traces(person)
        self.actor = Actor(erasure.owner_id, "system", cause="erasure")
        self.left = ROWS
        self.erased = Counter[str]()
        self.kept = Counter[str]()

    def learn(self, **found: Iterable[str | None]) -> None:
        """Add to what identifies the person."""
        found["aliases"] = [
            one for email in found.get("aliases", ()) if email for one in spellings(email)
        ]
        more = {
            name: tuple(dict.fromkeys((*getattr(self.person, name), *filter(None, values))))
            for name, values in found.items()
        }
        # The first ones are those of the named record.
        more |= {name: more[name][:MOST_KNOWN] for name in WORDS if name in more}
        self.person = structs.replace(self.person, **more)
        self.traces = Traces(self.person)


async def step(tx: Tx, erasure_id: str) -> bool:
    """Erase some records or stored responses of a person; return whether more are left."""
    erasure = await person_erasures.one(tx, erasure_id, lock=True)
    if erasure is None or erasure.person is None or erasure.stage not in ("records", "responses"):
        return False
    if erasure.stage == "responses":
        place, redacted = await stored_responses.sweep(
            tx, erasure.owner_id, erasure.place, erasure.person
        )
        await person_erasures.save(
            tx, erasure, stage="responses" if place else "log", person=erasure.person, place=place,
            erased={"storedResponses": redacted},
        )  # fmt: skip
        return bool(place)
    unit = _Unit(tx, erasure, erasure.person)
    if erasure.person.wide:
        # First: an import locks its job before the contacts of its lines.
        # A line may name the contact by its id alone, which would then be a new contact.
        came_from = await origins.forget(tx, erasure.owner_id, erasure.record_id)
        for text in (*erasure.person.emails, erasure.record_id, *came_from):
            dropped = await import_lines.drop_lines_with(tx, erasure.owner_id, text)
            unit.erased["importLines"] += dropped
    over = await _records(unit)
    tx.changed.add(f"{CHANGED}:{erasure.owner_id}")
    await person_erasures.save(
        tx, erasure, stage="responses" if over else "records", person=unit.person,
        erased=unit.erased, kept=unit.kept,
    )  # fmt: skip
    return True


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
        rest = tuple(one for one in unit.person.left if one != record_id)
        unit.person = structs.replace(unit.person, left=rest)
    if unit.left <= 0:
        return False
    return not unit.person.wide or await _others(unit)


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
    for row in await tx.all(_ORDERS_OF, unit.erasure.owner_id, customer_id, unit.left):
        await _order(unit, row["id"])
    found = await store.fetch(tx, CUSTOMERS, customer_id, lock=True)
    if found is None:
        return True
    if unit.left <= 0 or await tx.one(_ORDERS_OF, unit.erasure.owner_id, customer_id, 1):
        return False
    _know(unit, found, CUSTOMERS)
    for kind in ("addresses", "sessions", "identities"):
        table = f"customer_{kind}"
        sql = f"select count(*) as n from {table} where customer_id = $1"
        had = await tx.one(sql, customer_id)
        unit.erased[kind] += int(had["n"]) if had else 0
    mails = await tx.one(_MAILS, customer_id)
    unit.erased["mails"] += int(mails["n"]) if mails else 0
    unit.erased["clients"] += 1
    unit.left -= 1
    await erase_account(tx, unit.actor, Record(CUSTOMERS, found))
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
            for row in rows:
                await _dependant(unit, cascade, of, row[0], record_id)
                if unit.left <= 0:
                    break
        if unit.left <= 0:
            return False
    return True


async def _dependant(
    unit: _Unit, cascade: Unset | Drop, resource: Resource, dependant_id: str, record_id: str
) -> None:
    """Take the person out of a record that points to the contact or account."""
    if resource is ORDERS:
        await _order(unit, dependant_id)
        return
    row = await store.fetch(unit.tx, resource, dependant_id, lock=True)
    if row is None:
        return
    unit.left -= 1
    record = Record(resource, row)
    if isinstance(cascade, Drop):
        listed: list[str] = json.decode(record[cascade.column])
        unlinked: dict[str, Any] = {
            cascade.column: dumps([one for one in listed if one != record_id])
        }
    else:
        unlinked = dict.fromkeys((cascade.column, *cascade.also))
    if resource is CUSTOMERS:
        if dependant_id not in unit.person.clients:
            unit.learn(clients=[dependant_id], left=[dependant_id])
        redacted: Mapping[str, Any] = {}
    else:
        await _events(unit, record)
        redacted = redaction.redacted(unit.traces, record)
        unit.kept[resource.plural] += 1
    await store.update(unit.tx, resource, row, {**unlinked, **redacted})


async def _events(unit: _Unit, record: Record) -> None:
    """Erase the events of a record if they, or responses to them, name the person."""
    resource, traces = record.resource, unit.traces
    if not resource.events:
        return
    shown = {name for listed in resource.events.values() for name in listed}
    named = any(
        traces.within(record[field.column] or "", close=True)
        for field in redaction.texts(resource)
        if field.name in shown
    )
    if not named:
        found = await erasure_requests.texts(unit.tx, record.owner_id, record.id, EVENTS)
        named = await _any_within(unit, found)
    if named:
        kept = [f"{resource.noun}.deleted"]
        await erasure_requests.request(unit.tx, record.owner_id, [record.id], kept, unit.erasure.id)


async def _any_within(unit: _Unit, texts: Iterable[str]) -> bool:
    """Return whether a text names the person."""
    searched = 0
    try:
        for text in texts:
            searched += len(text)
            if unit.traces.within(text, close=True):
                return True
            if unit.tx.engine == "postgres":
                # Other work of the process; a unit on SQLite has a thread and never suspends.
                await asyncio.sleep(0)
        return False
    finally:
        unit.left -= searched // CHARACTERS


async def _order(unit: _Unit, order_id: str) -> None:
    """Take the person out of an order."""
    mails = await unit.tx.one(_ORDER_MAILS, order_id)

    def redacted(order: Record) -> Mapping[str, Any]:
        unit.learn(names=[order["name"]], phones=[order["phone"]])
        return redaction.redacted(unit.traces, order)

    await anonymise(unit.tx, unit.actor, order_id, unit.erasure.id, redacted)
    unit.erased["mails"] += int(mails["n"]) if mails else 0
    unit.kept["orders"] += 1
    unit.left -= 1


async def _others(unit: _Unit) -> bool:
    """Find what else of the owner has an email of the person; return whether nothing is left."""
    tx, owner_id = unit.tx, unit.erasure.owner_id
    for email in unit.person.emails:
        folded = fold_email(email)
        if email == ERASED_EMAIL:
            continue
        found = [row["id"] for row in await tx.all(_CONTACTS_WITH, owner_id, folded, ROWS)]
        if found:
            unit.learn(contacts=found, left=found)
            return False
        for one in folds(email):
            found = [row["id"] for row in await tx.all(_CLIENTS_WITH, owner_id, one, ROWS)]
            if found:
                unit.learn(clients=found, left=found)
                return False
        for row in await tx.all(_ORDERS_WITH, owner_id, folded, unit.left):
            await _order(unit, row["id"])
        if unit.left <= 0:
            return False
        for holder in set(counted_emails.holders(email)):
            nobody = hashlib.sha256(tx.new_id().encode()).digest()
            unit.erased["coupons"] += await tx.run(_MODALS, owner_id, holder, nobody)
    return True

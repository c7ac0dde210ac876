"""Exports everything that is stored about a person as one JSON file.

The file is made while the client reads it, a record in each transaction, so that neither its size
nor the number of records matters. It holds records as the API shows them.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import json

from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy import certificates, traces_elsewhere
from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.orders import order_addresses
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import actions, audit
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.records.resource import Cascade, Drop, Resource
from gateway.records.values import dates
from gateway.records.values.emails import fold_email, folds
from outbox.database.transaction import Database, Tx

PAGE = 50

_CONTACTS_WITH = """
select id from contacts where owner_id = $1 and email_folded = $2 and id > $3 order by id limit $4
"""
_CLIENTS_WITH = """
select e.record_id as id from stores s
join customer_emails e on e.store_id = s.id and e.value = $2
where s.owner_id = $1 and e.record_id > $3 order by e.record_id limit $4
"""
_CLIENTS_OF = """
select id from customers where owner_id = $1 and contact_id = $2 and id > $3 order by id limit $4
"""
_ORDERS_OF = """
select id from orders where owner_id = $1 and customer_id = $2 and id > $3 order by id limit $4
"""
_ORDERS_WITH = """
select id from orders where owner_id = $1 and email_folded = $2 and id > $3
order by id limit $4
"""
_IDENTITIES = """
select issuer, subject, created_at from customer_identities where customer_id = $1
order by created_at, issuer limit $2
"""
_SESSIONS = """
select created_at, expires_at from customer_sessions where customer_id = $1
order by created_at, id limit $2
"""
_CARTS = """
select c.state, c.lines, c.cep, c.created_at, c.touched_at from carts c
where c.store_id = $1 and c.customer_id = $2 order by c.created_at limit $3
"""
_MAILS = """
select kind, created_at, attempts from queued_mails
where customer_id = $1 order by created_at limit $2
"""


@dataclass(slots=True)
class _File:
    """The person, and the ids of the records that the file has, by noun."""

    person: Person
    ids: dict[str, dict[str, None]] = field(default_factory=dict)

    def of(self, resource: Resource) -> dict[str, None]:
        return self.ids.setdefault(resource.noun, {})


async def check(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record:
    """Return the record that names the person; note the export. Raises not_found, forbidden."""
    record = await actions.own(tx, actor, resource, record_id, "read")
    audit.record(tx, actor, "exported", resource.noun, record.id)
    return record


async def found(db: Database, actor: Actor, record: Record) -> Person:
    """Return the person of a contact or an account: all contacts and accounts with the email."""
    person = certificates.person_of(record)
    contacts, clients = dict.fromkeys(person.contacts), dict.fromkeys(person.clients)
    owner_id = actor.owner_id
    for email in person.emails:
        contacts |= dict.fromkeys(await _ids(db, _CONTACTS_WITH, owner_id, fold_email(email)))
        for folded in folds(email):
            clients |= dict.fromkeys(await _ids(db, _CLIENTS_WITH, owner_id, folded))
    if record.resource is CUSTOMERS and record["contact_id"] is not None:
        contacts[record["contact_id"]] = None
    for contact_id in contacts:
        clients |= dict.fromkeys(await _ids(db, _CLIENTS_OF, owner_id, contact_id))
    return msgspec.structs.replace(person, contacts=tuple(contacts), clients=tuple(clients))


async def export(db: Database, actor: Actor, person: Person) -> AsyncGenerator[bytes, None]:
    """Yield the parts of the file."""
    file = _File(person)
    now = dates.show(db.clock.wall())
    yield b'{"exportedAt":' + json.encode(now)
    yield b',"emails":' + json.encode(person.emails)
    file.of(CONTACTS).update(dict.fromkeys(person.contacts))
    async for part in _section(CONTACTS.plural, _records(db, actor, CONTACTS, file)):
        yield part
    async for part in _section(CUSTOMERS.plural, _accounts(db, actor, person)):
        yield part
    file.of(CUSTOMERS).update(dict.fromkeys(person.clients))
    await _point(db, actor, file)
    for resource in BY_TABLE.values():
        if resource not in (CONTACTS, CUSTOMERS) and file.of(resource):
            async for part in _section(resource.plural, _records(db, actor, resource, file)):
                yield part
    async for part in _section("coupons", traces_elsewhere.coupons(db, actor, person)):
        yield part
    async for part in _section("mails", traces_elsewhere.mails(db, actor, person)):
        yield part
    everything = [record_id for ids in file.ids.values() for record_id in ids]
    async for part in _section("events", traces_elsewhere.events(db, actor, everything)):
        yield part
    async for part in _section("audit", traces_elsewhere.audit(db, actor, everything)):
        yield part
    yield b"}\n"


async def _section(name: str, items_of: AsyncGenerator[Any, None]) -> AsyncGenerator[bytes, None]:
    yield b',"' + name.encode() + b'":['
    first = True
    async for item in items_of:
        yield (b"" if first else b",\n") + json.encode(item)
        first = False
    yield b"]"


async def _ids(db: Database, sql: str, *args: str) -> list[str]:
    """Return all ids that a paged query returns."""
    found: list[str] = []
    while True:
        rows = await db.read(traces_elsewhere.rows, sql, *args, found[-1] if found else "", PAGE)
        found += [row["id"] for row in rows]
        if len(rows) < PAGE:
            return found


async def _point(db: Database, actor: Actor, file: _File) -> None:
    """Find the records that point to the person, or have the email."""
    owner_id = actor.owner_id
    for target, ids in ((CONTACTS, file.person.contacts), (CUSTOMERS, file.person.clients)):
        for cascade in target.cascades:
            of = BY_TABLE[cascade.table]
            if of is not CUSTOMERS:
                for record_id in ids:
                    rows = await _ids(db, _pointing(cascade), owner_id, record_id)
                    file.of(of).update(dict.fromkeys(rows))
    for customer_id in file.person.clients:
        file.of(ORDERS).update(dict.fromkeys(await _ids(db, _ORDERS_OF, owner_id, customer_id)))
    for email in file.person.emails:
        folded = fold_email(email)
        file.of(ORDERS).update(dict.fromkeys(await _ids(db, _ORDERS_WITH, owner_id, folded)))


def _pointing(cascade: Cascade) -> str:
    if isinstance(cascade, Drop):
        return (
            f"select record_id as id from {cascade.listed_in}"
            " where owner_id = $1 and value = $2 and record_id > $3 order by record_id limit $4"
        )
    return (
        f"select id from {cascade.table} where owner_id = $1 and {cascade.column} = $2"
        " and id > $3 order by id limit $4"
    )


async def _records(
    db: Database, actor: Actor, resource: Resource, file: _File
) -> AsyncGenerator[Any, None]:
    # Of several at once the long texts would be unread.
    for record_id in file.of(resource):
        record = await db.read(_one, actor, resource, record_id)
        if record is not None:
            yield shown(record)


def shown(record: Record) -> dict[str, Any]:
    """Return the JSON form of a record, without unset fields."""
    resource = record.resource
    names = dict.fromkeys(
        (*resource.named, *(derived.name for derived in resource.derived), "createdAt", "updatedAt")
    )
    members = {"id": record.id} | {name: record.shown(name) for name in names}
    return {name: value for name, value in members.items() if value is not None}


async def _one(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Record | None:
    page = await actions.some(tx, actor, resource, [record_id])
    return page.records[0] if page.records else None


async def _accounts(db: Database, actor: Actor, person: Person) -> AsyncGenerator[Any, None]:
    for customer_id in person.clients:
        account = await db.read(_account, actor, customer_id)
        if account is not None:
            yield account


async def _account(tx: Tx, actor: Actor, customer_id: str) -> dict[str, Any] | None:
    """Return an account with what belongs to it alone."""
    record = await _one(tx, actor, CUSTOMERS, customer_id)
    if record is None:
        return None
    most = traces_elsewhere.MOST
    carts = await tx.all(_CARTS, record["store_id"], customer_id, most)
    return {
        "account": shown(record),
        "addresses": await order_addresses.listed(tx, customer_id),
        "identities": [
            {"issuer": row["issuer"], "subject": row["subject"],
             "linkedAt": dates.show(row["created_at"])}
            for row in await tx.all(_IDENTITIES, customer_id, most)
        ],
        "sessions": [
            {"startedAt": dates.show(row["created_at"]), "endsAt": dates.show(row["expires_at"])}
            for row in await tx.all(_SESSIONS, customer_id, most)
        ],
        "carts": [
            {"state": row["state"], "lines": json.decode(row["lines"]), "cep": row["cep"],
             "createdAt": dates.show(row["created_at"])}
            for row in carts
        ],
        "mails": [
            {"kind": row["kind"], "createdAt": dates.show(row["created_at"]),
             "attempts": row["attempts"]}
            for row in await tx.all(_MAILS, customer_id, most)
        ],
    }  # fmt: skip

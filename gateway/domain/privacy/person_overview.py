"""Finds persons, and counts what is stored about one, for a person who decides about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Person
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.query import Query
from gateway.records.record import Record
from gateway.records.resource import Drop
from outbox.database.transaction import Tx

MOST = 1_000
"""Records of one kind that are counted."""
FOUND = 20
_EVENTS = """
select count(*) as n from (
  select 1 as one from events where owner_id = $1 and record_id = $2 and webhook_id is null
    and seq is not null limit $3) as counted
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: contacts and accounts of stores."""

    contacts: Sequence[Record]
    clients: Sequence[Record]


async def find(tx: Tx, actor: Actor, text: str) -> Found:
    """Find persons by name, email or phone, as Query.anywhere does. Raises forbidden."""
    query = Query(search=text, limit=FOUND, anywhere=True)
    contacts = (await actions.page(tx, actor, CONTACTS, query)).records
    clients = (await actions.page(tx, actor, CUSTOMERS, query)).records
    return Found(contacts, clients)


async def counts(tx: Tx, actor: Actor, person: Person) -> dict[str, int]:
    """Return how many records of each kind are about a person, up to about MOST each."""
    counted = {CONTACTS.plural: len(person.contacts), CUSTOMERS.plural: len(person.clients)}
    for target, ids in ((CONTACTS, person.contacts), (CUSTOMERS, person.clients)):
        for cascade in target.cascades:
            of = BY_TABLE[cascade.table]
            if of is CUSTOMERS:
                continue
            table, column = cascade.table, cascade.column
            if isinstance(cascade, Drop):
                table, column = cascade.listed_in, "value"
            for record_id in ids[:FOUND]:
                left = MOST - counted.get(of.plural, 0)
                if left > 0:
                    row = await tx.one(
                        f"select count(*) as n from (select 1 as one from {table}"
                        f" where owner_id = $1 and {column} = $2 limit $3) as counted",
                        actor.owner_id,
                        record_id,
                        left,
                    )
                    counted[of.plural] = counted.get(of.plural, 0) + (int(row["n"]) if row else 0)
    events = 0
    for record_id in person.ids[:FOUND]:
        row = await tx.one(_EVENTS, actor.owner_id, record_id, MOST)
        events += int(row["n"]) if row else 0
    counted["events"] = min(events, MOST)
    return {kind: count for kind, count in counted.items() if count}


async def named(tx: Tx, actor: Actor, record_id: str) -> Record:
    """Return the contact or the account with this id. Raises not_found, forbidden."""
    try:
        return await actions.own(tx, actor, CONTACTS, record_id, "read")
    except Refusal as refusal:
        if refusal.code != "not_found":
            raise
        return await actions.own(tx, actor, CUSTOMERS, record_id, "read")

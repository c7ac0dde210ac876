"""Asks for the erasure of a person, and makes its certificate.

The certificate says what was erased and what is kept, by kind and number, without personal data.
A digest by the key ring seals it, so that a change of the stored row shows.
"""

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import json

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.contacts import CONTACTS, KEPT_EVENTS
from gateway.domain.contacts.person_erasures import Erasure, Person
from gateway.domain.privacy import erasure_units
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import actions, audit
from gateway.records.audit import Actor, must_own
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.values import dates
from gateway.records.values.emails import spellings
from outbox.database.transaction import Tx
from outbox.ids import is_id
from outbox.queue.upkeep import erasure_requests
from outbox.webhooks.secrets import KeyRing

PURPOSE = "certificates of erasures"
OF: Mapping[str, Resource] = {of.noun: of for of in (CONTACTS, CUSTOMERS)}
AT_ONCE = 200
LONGEST_LIST = 100
"""Ids of records that a certificate names."""
WHY: Mapping[str, str] = {
    "orders": "The law requires the records of a sale: number, lines, amounts and CPF or CNPJ. "
    "Name, email, phone, address and notes are removed.",
    "invoices": "The law requires them. They no longer point to the person.",
    "quotes": "They no longer point to the person, and their texts do not name it.",
    "deals": "They no longer point to the person, and their texts do not name it.",
    "tasks": "They no longer point to the person, and their texts do not name it.",
    "reviews": "The text stays without its author, and does not name the person.",
}
WHY_OTHERS = "They no longer point to the person, and their texts do not name it."
ALWAYS: Mapping[str, str] = {
    "attempts": "Each attempt stays in the log with a digest of its response, so that the log can "
    "be verified.",
    "audit": "Entries name records and fields, and never hold a value.",
    "backups": "Backups from before the erasure hold the person until they expire; erase again "
    "after a restore.",
}
"""What is kept in any case, and why."""


async def request(tx: Tx, actor: Actor, resource: Resource, record_id: str) -> Erasure:
    """Ask for the erasure of the person with a contact or an account; return it.

    The first records go in this transaction. A repeat returns the same erasure. A contact that was
    deleted can be named as long as its events are stored. Raises not_found, forbidden.
    """
    record_id = record_id.lower()
    if is_id(record_id) and (before := await earlier(tx, actor, record_id)) is not None:
        actor.must("write")
        return before
    try:
        record = await actions.own(tx, actor, resource, record_id, "write", lock=True)
    except Refusal as refusal:
        if refusal.code != "not_found" or not is_id(record_id):
            raise
        # Its lock may have waited for the same request.
        before = await earlier(tx, actor, record_id)
        if before is None and (
            resource is not CONTACTS or not await _was_deleted(tx, actor, record_id)
        ):
            raise
        actor.must("write")
        if before is not None:
            return before
        person = Person(contacts=(record_id,), left=(record_id,))
    else:
        person = person_of(record)
    audit.record(tx, actor, "erased", resource.noun, record_id)
    return await begin(tx, actor.owner_id, resource, record_id, person)


async def earlier(tx: Tx, actor: Actor, record_id: str) -> Erasure | None:
    """Return the erasure that the actor asked for by this record, or None."""
    return await person_erasures.of_record(tx, actor.owner_id, record_id)


async def was_there(tx: Tx, actor: Actor, record_id: str) -> bool:
    """Return whether the actor had a contact that was erased, or deleted with events that stay."""
    known = await earlier(tx, actor, record_id) is not None
    return known or await _was_deleted(tx, actor, record_id)


async def _was_deleted(tx: Tx, actor: Actor, record_id: str) -> bool:
    name = f"{CONTACTS.noun}.deleted"
    return await erasure_requests.any_event(tx, actor.owner_id, record_id, name)


async def command(tx: Tx, actor: Actor, resource: Resource | None, record_id: str) -> Erasure:
    """Ask for the erasure of a person by a command; None: of a contact that was deleted before.

    A repeat looks for its events once more. Raises not_found, forbidden.
    """
    before = await earlier(tx, actor, record_id)
    if before is None:
        return await request(tx, actor, resource or CONTACTS, record_id)
    ids = [record_id, *before.records]
    if before.stage == "log":
        await erasure_requests.renew(tx, actor.owner_id, ids, KEPT_EVENTS, before.id)
    else:
        await erasure_requests.request(tx, actor.owner_id, ids, KEPT_EVENTS)
    return before


async def begin(
    tx: Tx, owner_id: str, resource: Resource, record_id: str, person: Person
) -> Erasure:
    """Store the erasure of a person, and erase the first records."""
    erasure = await person_erasures.add(tx, owner_id, resource.noun, record_id, person)
    await erasure_units.step(tx, erasure.id)
    after = await person_erasures.one(tx, erasure.id)
    assert after is not None
    return after


def person_of(record: Record) -> Person:
    """Return the person of a contact or an account."""
    ids = (record.id,)
    is_contact = record.resource is CONTACTS
    return Person(
        contacts=ids if is_contact else (), clients=() if is_contact else ids, left=ids,
        emails=spellings(record["email"]) if record["email"] else (), names=(record["name"],),
        phones=tuple(filter(None, [record["phone"]])), wide=True,
    )  # fmt: skip


async def own(tx: Tx, actor: Actor, erasure_id: str) -> Erasure:
    """Return an erasure of the actor. Raises not_found, forbidden."""
    erasure = None
    if is_id(erasure_id):
        erasure = await person_erasures.one(tx, erasure_id.lower())
    if erasure is None:
        raise Refusal("not_found", "There is no erasure with this id.")
    must_own(actor, erasure.owner_id, "erasure")
    actor.must("read")
    return erasure


async def listed(tx: Tx, actor: Actor, before: str | None, limit: int) -> Sequence[Erasure]:
    """Return erasures of the actor, the newest first. Raises forbidden."""
    actor.must("read")
    return await person_erasures.page(tx, actor.owner_id, before, limit)


def shown(erasure: Erasure) -> dict[str, Any]:
    """Return the certificate as JSON, without its seal."""
    requested, completed = times(erasure)
    whole = {
        "id": erasure.id, "recordId": erasure.record_id, "resource": OF[erasure.noun].plural,
        "state": "running" if completed is None else "done", "requestedAt": requested,
        "completedAt": completed, "recordIds": list(erasure.records[:LONGEST_LIST]),
        "erased": dict(erasure.erased),
        "kept": [
            {"what": kind, "why": why(kind)} | ({} if count is None else {"count": count})
            for kind, count in kept(erasure).items()
        ],
    }  # fmt: skip
    return {name: value for name, value in whole.items() if value is not None}


def kept(erasure: Erasure) -> dict[str, int | None]:
    """Return the kinds of what is kept, with their number where it is counted."""
    return {**erasure.kept, **dict.fromkeys(ALWAYS)}


def why(kind: str) -> str:
    """Return why something is kept."""
    return ALWAYS.get(kind) or WHY.get(kind, WHY_OTHERS)


def seal(erasure: Erasure, completed_at: int, ring: KeyRing, key_id: str | None = None) -> str:
    """Return the digest over a certificate by a key of the ring, the newest one if none is named.

    Raises KeyError when the ring has no such key.
    """
    facts: list[Any] = [
        erasure.id, erasure.owner_id, erasure.noun, erasure.record_id, erasure.requested_at,
        completed_at, list(erasure.records), sorted(erasure.erased.items()),
        sorted(erasure.kept.items()),
    ]  # fmt: skip
    key = ring.derive(PURPOSE)[key_id or ring.newest]
    return hmac.digest(key, json.encode(facts), "sha256").hex()


def is_intact(erasure: Erasure, ring: KeyRing) -> bool | None:
    """Return whether the seal fits the certificate; None without a seal or its key."""
    if erasure.seal is None or erasure.completed_at is None:
        return None
    try:
        expected = seal(erasure, erasure.completed_at, ring, erasure.seal_key or "")
    except KeyError:
        return None
    return hmac.compare_digest(expected, erasure.seal)


async def seal_again(tx: Tx, owner_id: str, old: KeyRing, new: KeyRing) -> None:
    """Seal the intact certificates of an owner, who came from another ring, with a key of `new`."""
    before: str | None = None
    while page := await person_erasures.page(tx, owner_id, before, AT_ONCE):
        for erasure in page:
            completed = erasure.completed_at
            if completed is not None and not is_intact(erasure, new) and is_intact(erasure, old):
                sealed = seal(erasure, completed, new)
                await person_erasures.seal_again(tx, erasure.id, sealed, new.newest)
        before = page[-1].id


def times(erasure: Erasure) -> tuple[str, str | None]:
    """Return when an erasure was asked for and when it was complete."""
    completed = erasure.completed_at
    return dates.show(erasure.requested_at), None if completed is None else dates.show(completed)

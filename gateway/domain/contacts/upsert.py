"""Finds or creates the contact of an email address, for an owner and for a storefront.

The email of a contact is not unique: the oldest contact with it is the one. All upserts of one
address wait for each other, so that two at once create one contact. What an owner sends overwrites;
what a visitor of a storefront sends only fills blanks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions, store
from gateway.records.audit import Actor
from gateway.records.errors import Fault
from gateway.records.record import Draft, Record, record_of
from gateway.records.values import formats
from gateway.records.values.emails import fold_email
from gateway.records.values.folding import fold
from gateway.records.values.strictjson import dumps
from outbox.database import locks
from outbox.database.transaction import Tx

MOST_TAGS = 50
SOURCE = "storefront"
_REQUIRED = "email is required: it finds the contact."
_LOCK = f"select pg_advisory_xact_lock(hashtextextended($1, {locks.CONTACT_KEYS}))"
_OLDEST = """
select id from contacts where owner_id = $1 and email_folded = $2 order by created_at, id limit 1
"""
# Locked, so that a later delete takes it out of the contact too.
_COMPANY = """
select id from companies where owner_id = $1 and sort_name = $2 order by id limit 1
/*postgres for key share*/
"""


async def put(tx: Tx, actor: Actor, new: Draft, changes: Draft) -> tuple[Record, bool]:
    """Return the owner's contact with the email of the drafts, and whether it was created.

    `new` and `changes` are the same body, checked as a create and as an update. Raises forbidden,
    or the faults of the one that applies.
    """
    actor.must("write")
    email = new.sent.get("email")
    if email is None:
        new.must_hold(() if _faulty(new, "email") else [Fault("email", "required", _REQUIRED)])
    contact = None if email is None else await oldest(tx, actor, fold_email(email))
    if contact is None:
        return await actions.create(tx, actor, CONTACTS, new), True
    return await actions.change(tx, actor, CONTACTS, contact.id, changes), False


def _faulty(draft: Draft, name: str) -> bool:
    return draft.unreadable is not None or any(fault.field == name for fault in draft.faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactDetails:
    """What a visitor says about themselves; the values are checked already."""

    email: str
    name: str | None = None
    phone: str | None = None
    company: str | None = None
    """Links the contact to the owner's company of this name, if there is one."""
    position: str | None = None
    tags: Sequence[str] = ()
    consent: bool | None = None


async def upsert(tx: Tx, actor: Actor, details: ContactDetails) -> Record:
    """Return the owner's contact with this email, created or completed.

    It fills blank fields and adds tags, and never overwrites a value. Emits contact.created, or
    contact.updated when something changed. It locks the address and then the contact until the
    transaction ends: call it after locking carts, products and coupons, and before taking a number.
    """
    actor.must("write")
    email, phone, company = details.email, details.phone, details.company
    folded = fold_email(email)
    company_id = None if company is None else await _company(tx, actor.owner_id, company)
    filled: dict[str, Any] = {
        "name": details.name,
        "phone": phone,
        "phone_e164": None if phone is None else formats.e164(phone),
        "position": details.position,
        "company_id": company_id,
        "consent": details.consent,
    }
    before = await oldest(tx, actor, folded)
    if before is None:
        values = {
            **filled,
            "name": details.name or _local_part(email),
            "email": email.strip(),
            "email_folded": folded,
            "tags": _merged("[]", details.tags),
            "source": SOURCE,
        }
        return actions.announce(
            tx, "created", await actions.insert(tx, actor, CONTACTS, values), before=None
        )
    changes = {
        column: value
        for column, value in filled.items()
        if value is not None and _is_blank(before, column)
    }
    merged = _merged(before["tags"], details.tags)
    if merged != before["tags"]:
        changes["tags"] = merged
    if not changes:
        return before
    return actions.announce(
        tx, "updated", await actions.update(tx, actor, before, changes), before=before
    )


async def note(
    tx: Tx, actor: Actor, contact_id: str, text: str, metadata: Mapping[str, Any] | None = None
) -> Record:
    """Add a note to the history of a contact; a text past the limit of activities is cut."""
    values = {
        "type": "note",
        "description": text[: formats.LONG],
        "related_id": contact_id,
        "related_type": "contact",
        "metadata": dumps(dict(metadata)) if metadata else None,
        "created_by": actor.owner_id,
    }
    return actions.announce(
        tx, "created", await actions.insert(tx, actor, ACTIVITIES, values), before=None
    )


async def oldest(tx: Tx, actor: Actor, folded: str) -> Record | None:
    """Return the owner's oldest contact with this folded address, locked like it, or None."""
    if tx.engine == "postgres":
        # SQLite has one writer. A lock on a row could not protect an address without a contact.
        await tx.one(_LOCK, f"{actor.owner_id} {folded}")
    while (found := await tx.one(_OLDEST, actor.owner_id, folded)) is not None:
        row = await store.fetch(tx, CONTACTS, found["id"], lock=True)
        # The lock may have waited for a delete or for a change of the address.
        if row is not None and row[CONTACTS.position["email_folded"]] == folded:
            return record_of(CONTACTS, row, tx.now, actor.zone)
    return None


def _is_blank(before: Record, column: str) -> bool:
    """Return whether the column is empty, so that setting it loses nothing."""
    if column == "phone_e164":
        column = "phone"
    stored = before[column]
    if column == "name" and before["source"] == SOURCE:
        # Without a name, the contact was named after its email.
        return bool(stored == _local_part(before["email"] or ""))
    return stored is None or stored == ""


def _local_part(email: str) -> str:
    return email.strip().partition("@")[0]


def _merged(stored: str, tags: Iterable[str]) -> str:
    """Return the JSON list of tags with further ones, up to the maximum."""
    old: list[str] = json.decode(stored)
    return dumps(list(dict.fromkeys([*old, *tags]))[: max(len(old), MOST_TAGS)])


async def _company(tx: Tx, owner_id: str, name: str) -> str | None:
    row = await tx.one(_COMPANY, owner_id, fold(name.strip()))
    return None if row is None else str(row["id"])

"""Declares contacts, the people (leads) of an owner, and erases them."""

from gateway.domain import record_origins
from gateway.records import actions, audit, store
from gateway.records.audit import Actor
from gateway.records.resource import (
    BY_NAME,
    BY_TIME,
    LASTS,
    DerivedColumn,
    Drop,
    Field,
    Filter,
    Reference,
    Remove,
    Resource,
    Unset,
)
from gateway.records.values import formats
from gateway.records.values.emails import fold_email
from outbox.database.transaction import Tx
from outbox.queue.upkeep import erasure_requests

CONTACTS = Resource(
    noun="contact",
    plural="contacts",
    table="contacts",
    description="A person: a lead or a contact at a company.",
    fields=(
        Field("name", "name", formats.title(), "Full name.", "Maria da Silva", required=True),
        Field(
            "email", "email", formats.email(), "E-mail address; not necessarily unique.",
            "maria@example.com", beside=(DerivedColumn("email_folded", fold_email),),
        ),
        Field(
            "phone", "phone", formats.phone(), "Phone with area code, stored unchanged.",
            "+55 11 98888-7777", beside=(DerivedColumn("phone_e164", formats.e164),),
        ),
        Field(
            "phoneE164", "phone_e164", formats.text(20),
            "The phone in E.164, if it can be derived.", "+5511988887777",
            on_create=False, on_update=False,
        ),
        Field("position", "position", formats.text(200), "Job title or role.", "Buyer"),
        Field("notes", "notes", formats.text(formats.LONG), "Notes.", "Met at the fair."),
        Field(
            "companyId", "company_id", formats.id_of("company"), "The company of the contact.",
            "018f3a5b7c9d1e2f3a4b5c6d", reference=Reference("company", "companies"),
        ),
        Field(
            "tags", "tags", formats.tags(), "Labels, without repeats.", ["vip", "fair-2026"],
            default="[]", listed_in="contact_tags",
        ),
        Field(
            "source", "source", formats.one_of("api", "web", "storefront", "import"),
            "Where the contact came from.", "api", on_update=False, default="api",
        ),
        Field(
            "consent", "consent", formats.boolean(), "Whether the person agreed to contact.", True,
        ),
    ),
    events={
        "created": ("id", "name", "email", "phone", "createdAt"),
        "updated": ("id", "name", "position", "updatedAt"),
        "deleted": ("id",),
    },
    search=("name", "email"),
    numbers=("phone",),
    folded_sort="name",
    key="email",
    sorts=(*BY_TIME, BY_NAME),
    filters=(
        Filter(
            "tag",
            "id in (select record_id from contact_tags where owner_id = $1 and value = {})",
            "text", "Only contacts with exactly this tag.",
        ),
        Filter(
            "companyId", f"company_id = {{}} and {LASTS}", "id", "Only contacts of this company.",
        ),
    ),
    cascades=(
        Unset("tasks", "contact_id"),
        Unset("quotes", "contact_id"),
        Unset("invoices", "contact_id"),
        Unset("customers", "contact_id"),
        Unset("orders", "contact_id"),
        Drop("deals", "contact_ids", "deal_contacts"),
        Remove("activities", "related_id"),
    ),
)  # fmt: skip


KEPT_EVENTS = ("contact.deleted",)
"""Events of contacts without personal data: they tell receivers of the erasure."""
_DROP_MAILS = "delete from queued_mails where owner_id = $1 and contact_id = $2"


async def erase(tx: Tx, actor: Actor, contact_id: str, subject: str | None = None) -> bool:
    """Erase the person from the actor's contacts, their events, the log and the waiting mails.

    It also erases a contact that was deleted before. A plain delete keeps events and log, because
    receivers may still need the events that wait. `subject` is the erasure that counts it.

    Return whether the contact existed. Raises forbidden.
    """
    await record_origins.forget(tx, actor.owner_id, contact_id)
    there = await store.fetch(tx, CONTACTS, contact_id, lock=True) is not None
    if there:
        await actions.own(tx, actor, CONTACTS, contact_id, "write")
    await erasure_requests.request(tx, actor.owner_id, [contact_id], KEPT_EVENTS, subject)
    await tx.run(_DROP_MAILS, actor.owner_id, contact_id)
    if there:
        await actions.remove(tx, actor, CONTACTS, contact_id, action="erased")
    else:
        audit.record(tx, actor, "erased", CONTACTS.noun, contact_id)
    return there

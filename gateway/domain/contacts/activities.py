"""Declares activities, the timeline of a contact, a company or a deal."""

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.query import Page, Query
from gateway.records.record import Draft, Record
from gateway.records.resource import Field, Filter, Reference, Resource
from gateway.records.values import formats, nested
from outbox.database.transaction import Tx

TYPES = ("call", "email", "meeting", "note", "task")
RELATED = {"contact": "contacts", "company": "companies", "deal": "deals"}
"""The kinds of records that an activity can refer to, and their tables."""
RECENT = 10
"""Default size of the list of recent activities."""

ACTIVITIES = Resource(
    noun="activity",
    plural="activities",
    table="activities",
    description="An event in the history of a contact, a company or a deal.",
    fields=(
        Field(
            "type", "type", formats.one_of(*TYPES), "Type of the activity.", "call",
            required=True,
        ),
        Field(
            "description", "description", formats.title(formats.LONG), "What happened.",
            "Asked for a new quote.", required=True,
        ),
        Field(
            "relatedTo", "related_id", formats.id_of("record"),
            "Id of the related contact, company or deal.", "018f3a5b7c9d1e2f3a4b5c6e",
            required=True, reference=Reference(by="relatedType", tables=RELATED),
        ),
        Field(
            "relatedType", "related_type", formats.one_of(*RELATED), "Kind of the related record.",
            "contact", required=True,
        ),
        Field(
            "metadata", "metadata", nested.free_object(),
            "Free additional data, up to 16 KiB and 8 levels.", {"durationSeconds": 340},
        ),
        Field(
            "createdBy", "created_by", formats.id_of("user"), "The user who created it.",
            "018f3a5b7c9d1e2f3a4b5c60", on_create=False, on_update=False, made=True,
        ),
    ),
    search=("description",),
    # The contract has no event for activities.
    events={},
    filters=(
        Filter(
            "type", "type = {}", "text", "Only activities of this kind.", TYPES,
        ),
        Filter(
            "relatedTo", "related_id = {}", "id",
            "Only activities about this contact, company or deal.",
        ),
        Filter(
            "relatedType", "related_type = {}", "text",
            "Only activities about records of this kind.", tuple(RELATED),
        ),
    ),
)  # fmt: skip


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create an activity with its owner as `createdBy`. See actions.create."""
    actor.must("write")
    values = await actions.check(tx, actor, ACTIVITIES, draft)
    values["created_by"] = actor.owner_id
    return actions.announce(
        tx, "created", await actions.insert(tx, actor, ACTIVITIES, values), before=None
    )


async def recent(tx: Tx, actor: Actor, limit: int) -> Page:
    """Return the owner's latest activities, newest first. Raises forbidden."""
    return await actions.page(tx, actor, ACTIVITIES, Query(limit=limit))

"""Activities: the timeline of what happened with a contact, a company or a deal."""

from typing import Any

from gateway import actions, formats, nested
from gateway.access import Caller
from gateway.listing import Plan
from gateway.resource import Field, Filter, Reference, Resource
from gateway.validation import Draft
from gateway.views import View
from outbox.database.transaction import Tx

TYPES = ("call", "email", "meeting", "note", "task")
RELATED = {"contact": "contacts", "company": "companies", "deal": "deals"}
"""What an activity may be about, and its table."""
RECENT = 10
"""How many activities are recent."""

ACTIVITIES = Resource(
    noun="activity",
    plural="activities",
    table="activities",
    description="Something that happened with a contact, a company or a deal.",
    fields=(
        Field(
            "type", "type", formats.one_of(*TYPES), "What kind of thing it was.", "call",
            required=True,
        ),
        Field(
            "description", "description", formats.title(formats.LONG), "What happened.",
            "Asked for a new quote.", required=True,
        ),
        Field(
            "relatedTo", "related_id", formats.id_of("record"),
            "The contact, company or deal that it is about.", "018f3a5b7c9d1e2f3a4b5c6e",
            required=True, reference=Reference(by="relatedType", tables=RELATED),
        ),
        Field(
            "relatedType", "related_type", formats.one_of(*RELATED), "Which of these it is.",
            "contact", required=True,
        ),
        Field(
            "metadata", "metadata", nested.free_object(),
            "Free additional data, up to 16 KiB and 8 levels.", {"durationSeconds": 340},
        ),
        Field(
            "createdBy", "created_by", formats.id_of("user"), "The user who noted it.",
            "018f3a5b7c9d1e2f3a4b5c60", on_create=False, on_update=False, made=True,
        ),
    ),
    # The contract has no event for activities.
    events={},
    filters=(
        Filter(
            "type", "type = {}", str, {"type": "string", "enum": list(TYPES)},
            "Only activities of this kind.",
        ),
        Filter(
            "relatedTo", "related_id = {}", str.lower, {"type": "string"},
            "Only activities about this contact, company or deal.",
        ),
        Filter(
            "relatedType", "related_type = {}", str, {"type": "string", "enum": list(RELATED)},
            "Only activities about records of this kind.",
        ),
    ),
)  # fmt: skip


async def create(tx: Tx, caller: Caller, resource: Resource, draft: Draft) -> View:
    """`actions.create`, signed by the caller."""
    draft.values["created_by"] = caller.user_id
    return await actions.create(tx, caller, resource, draft)


async def recent(tx: Tx, caller: Caller, limit: int) -> list[Any]:
    """The caller's latest activities, newest first, as `actions.page` gives them."""
    return (await actions.page(tx, caller, ACTIVITIES, Plan(1, limit))).records

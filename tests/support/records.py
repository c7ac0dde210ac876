"""Records in tests of the domain: drafts from JSON values, records as REST shows them."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.cursors import text_of
from gateway.records.query import Page
from gateway.records.record import Draft, check
from gateway.records.resource import Form, Resource
from gateway.rest.body import shown
from gateway.rest.params import query_of
from outbox.database.transaction import Database


def asked(form: Form, body: Mapping[str, Any], *, creating: bool = False) -> Draft:
    """Return the draft of a body with these JSON values."""
    return check(form, body, from_json=True, creating=creating)


async def listed(
    db: Database, actor: Actor, resource: Resource, given: Mapping[str, str]
) -> tuple[Page, list[Struct], str | None]:
    """Return the page of a query, its records as shown, and the cursor."""
    query = query_of(resource, given)
    found = await db.read(actions.page, actor, resource, query)
    cursor = text_of(resource, query, found.onward)
    return found, shown(resource, found.records), cursor

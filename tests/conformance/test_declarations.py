"""Tests references whose kind is in another field, and filters by amount, on both engines."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.contacts import activities
from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from gateway.rest.record_json import members_of
from outbox.database.transaction import Database
from tests.support.records import asked, listed
from tests.support.tables import in_turn

ANA = Actor("a" * 24, "api_key")
NOWHERE = "0" * 24


async def made(db: Database, resource: Resource, **body: Any) -> str:
    draft = asked(resource, body, creating=True)
    if resource is ACTIVITIES:
        return (await db.write(activities.create, ANA, draft)).id
    return (await db.write(actions.create, ANA, resource, draft)).id


async def test_a_reference_with_its_kind_in_another_field(db: Database) -> None:
    company = await made(db, COMPANIES, name="a")
    contact = await made(db, CONTACTS, name="b")
    call = {"type": "call", "description": "x"}
    activity = await made(db, ACTIVITIES, **call, relatedTo=company, relatedType="company")
    for related, kind in (
        (contact, "company"), (company, "contact"), (NOWHERE, "contact"), (company, "ship"),
    ):  # fmt: skip
        with pytest.raises(Refusal) as caught:
            await made(db, ACTIVITIES, **call, relatedTo=related, relatedType=kind)
        assert caught.value.code in ("validation_error", "invalid_reference")
    for one_sided in ({"relatedTo": contact}, {"relatedType": "contact"}):
        with pytest.raises(Refusal) as caught:
            await db.write(actions.change, ANA, ACTIVITIES, activity, asked(ACTIVITIES, one_sided))
        assert caught.value.code == "invalid_reference"
    both = asked(ACTIVITIES, {"relatedTo": contact, "relatedType": "contact"})
    moved = members_of(await db.write(actions.change, ANA, ACTIVITIES, activity, both))
    assert (moved["relatedTo"], moved["relatedType"]) == (contact, "contact")


@in_turn("value", ["", "x", "-1", "1.001", "true", "null", '"1"', "NaN", "1e400"])
async def test_an_invalid_filter_value_matches_nothing(db: Database, value: str) -> None:
    await made(db, DEALS, title="T", value=1)
    found, _, _ = await listed(db, ANA, DEALS, {"minValue": value})
    assert (found.total, found.records) == (0, [])

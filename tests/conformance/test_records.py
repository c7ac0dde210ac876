"""Tests create, read, change and delete of records, with events and totals, on both engines."""

import asyncio
from typing import Any

import pytest

from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.rest.params import expected_of
from outbox.database.transaction import Database
from tests.support.records import asked

ANA = Actor("a" * 24, "api_key")
BAD = ("validation_error", "invalid_reference")


async def made(
    db: Database, resource: Resource = CONTACTS, who: Actor = ANA, **body: Any
) -> Record:
    draft = asked(resource, {"name": "Maria"} | body, creating=True)
    return await db.write(actions.create, who, resource, draft)


async def changed(
    db: Database, record_id: str, if_match: str | None = None, who: Actor = ANA, **body: Any
) -> Record:
    draft = asked(CONTACTS, body)
    expected = expected_of(if_match)
    return await db.write(actions.change, who, CONTACTS, record_id, draft, expected)


async def refused(awaited: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await awaited
    return caught.value


async def test_if_match_guards_updates_and_deletes(db: Database) -> None:
    contact = await made(db)
    record_id = contact.id
    await changed(db, record_id, '"1"', name="Two")
    for stale in ('"1"', 'W/"2"', "2", '"x", "y"'):
        assert (
            await refused(changed(db, record_id, stale, name="Three"))
        ).code == "precondition_failed"
        assert (
            await refused(db.write(actions.remove, ANA, CONTACTS, record_id, expected_of(stale)))
        ).code == "precondition_failed"
    await changed(db, record_id, '"7", "2"', name="Three")
    await changed(db, record_id, "*", name="Four")
    # Faults of the body take precedence over a stale ETag.
    assert (await refused(changed(db, record_id, '"1"', name=""))).code in BAD
    await db.write(actions.remove, ANA, CONTACTS, record_id, expected_of('"4"'))


async def test_one_of_the_concurrent_changes_with_the_same_if_match_succeeds(db: Database) -> None:
    contact = (await made(db)).id
    outcomes = await asyncio.gather(
        *(changed(db, contact, '"1"', notes=f"note {i}") for i in range(8)), return_exceptions=True
    )
    won = [o for o in outcomes if isinstance(o, Record)]
    assert len(won) == 1
    assert all(o.code == "precondition_failed" for o in outcomes if isinstance(o, Refusal))
    assert len(won) + sum(isinstance(o, Refusal) for o in outcomes) == 8

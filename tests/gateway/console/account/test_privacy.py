"""The pages about persons: search, the file, erasure and its certificate."""

import json

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.privacy.persons import Persons
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import check
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Tx
from outbox.queue.drain.fanout import fan_out
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.console import Guest
from tests.support.drain import rows, run

HOME = "/console/privacy"


async def contact(tx: Tx, owner_id: str) -> str:
    values = {"name": "Zoe <b>", "email": "zoe@quux.example", "phone": "(11) 97777-1234"}
    draft = check(CONTACTS, values, creating=True)
    return (await actions.create(tx, Actor(owner_id, "system"), CONTACTS, draft)).id


async def test_a_damaged_event_ends_no_export(maria: Guest) -> None:
    db = maria.site.db
    [user] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    contact_id = await db.write(contact, user["id"])
    await db.write(fan_out, ROOM)
    await db.write(run, "update events set body = $1", b"Zo\xe5")
    held = json.loads((await maria.get(f"{HOME}/{contact_id}/file")).html)
    assert [event["body"] for event in held["events"]] == ["Zo\ufffd"]


async def test_a_person_is_found_exported_and_erased_with_a_certificate(maria: Guest) -> None:
    db = maria.site.db
    [user] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    contact_id = await db.write(contact, user["id"])
    await db.write(fan_out, ROOM)
    assert "No erasures yet" in (await maria.get(HOME)).html
    for text in ("zoe", "quux.example", "11 97777 1234"):
        page = await maria.get(f"{HOME}?q={text}")
        assert page.link("<bdi>Zoe &lt;b&gt;</bdi>") == f"{HOME}/{contact_id}", text
    assert "Nobody found" in (await maria.get(f"{HOME}?q=nobody")).html
    page = await maria.get(f"{HOME}/{contact_id}")
    assert "<dt>Contacts</dt><dd>1</dd>" in page.html
    file = await maria.get(f"{HOME}/{contact_id}/file")
    assert f'filename="person-{contact_id}.json"' in file.headers["Content-Disposition"]
    held = json.loads(file.html)
    assert held["contacts"][0]["phone"] == "(11) 97777-1234"
    assert json.loads(held["events"][0]["body"])["data"]["email"] == "zoe@quux.example"
    assert "This cannot be undone" in (await maria.get(f"{HOME}/{contact_id}/erase")).html
    page = await maria.submit(f"{HOME}/{contact_id}/erase")
    assert page.path.startswith("/console/erasures/")
    assert "in progress" in page.html
    await db.write(fan_out, ROOM)
    persons = Persons(db, maria.site.app[KEYRING])
    await persons.run_once()
    page = await maria.get(page.path)
    assert "its seal matches" in page.html
    assert "zoe" not in page.html.lower()
    assert page.id in (await maria.get(HOME)).html
    await db.write(_forge)
    assert "was changed after it was issued" in (await maria.get(page.path)).html


async def _forge(tx: Tx) -> None:
    await tx.run("update person_erasures set erased = '{}'")

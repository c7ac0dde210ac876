"""Persons are erased while a snapshot runs: it sends nothing of them afterwards."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.console import Forms
from tests.support.crm_rows import add_contacts
from tests.support.engines import Engine, empty_database
from tests.support.ledger import query, until_drained
from tests.support.product import Product
from tests.support.site import HASHED
from tests.support.tenants import Tenants, settle_in
from tests.system.test_forgotten_persons import Owner

COUNT = 1_500
WAITS = 300
"""The place of a person whose delivery waits at the erasure; snapshots make 500 ahead."""
UNREACHED = 1_400
"""The place of one that the snapshot has not read yet."""
TRACE = "Quuxley"
JOB = "select state, made from jobs"
CONTACTS = "select id from contacts order by created_at, id"


@dataclass
class Receiver:
    """A receiver that accepts the first delivery, and the others once it is `open`."""

    port: int = 0
    got: list[bytes] = field(default_factory=list)
    first: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        if self.first.is_set():
            await self.open.wait()
        self.got.append(body)
        self.first.set()
        return web.Response()

    def ids(self) -> set[str]:
        return {json.loads(body)["data"]["id"] for body in self.got}


async def _stage(url: str, owner_id: str) -> tuple[list[str], list[str]]:
    """Store the contacts, and name the three persons among them; return their ids, and all."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())

    async def fill(tx: Tx) -> None:
        await tx.run("update users set password_hash = $1", HASHED)
        await add_contacts(tx, owner_id, COUNT, "0" * 24)

    async def name(tx: Tx, contact_id: str) -> None:
        await tx.run("update contacts set name = $2 where id = $1", contact_id, f"Zoe {TRACE}")

    try:
        await db.write(fill)
        known = [row[0] for row in await query(url, CONTACTS)]
        persons = [known[place] for place in (0, WAITS, UNREACHED)]
        for person in persons:
            await db.write(name, person)
    finally:
        await db.close()
    return persons, known


async def _start(product: Product, webhook_id: str) -> None:
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(product.address, cookie_jar=jar) as http:
        somebody = Forms(http)
        await somebody.sign_in("owner0@example.com")
        path = f"/console/webhooks/{webhook_id}/snapshot"
        started = await somebody.submit(path, names="contact.created", rate="1000")
        assert started.path.startswith("/console/jobs/"), started


async def _until(url: str, made: int) -> None:
    """Wait until the job has made so many deliveries, or has ended."""
    async with asyncio.timeout(120):
        while True:
            [(state, so_far)] = await query(url, JOB)
            if so_far >= made or state != "running":
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_running_snapshot_sends_nothing_of_a_person_who_was_erased(engine: Engine) -> None:
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.take))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.port = runner.addresses[0][1]
    try:
        with tempfile.TemporaryDirectory(prefix="carteiro-snapshot-") as home:
            async with empty_database(engine, Path(home)) as url:
                tenants = await settle_in(
                    url, Path(home), [receiver.port], owners=1, webhooks=1,
                    events=("contact.created",),
                )  # fmt: skip
                await _run(url, Path(home), tenants, receiver)
    finally:
        receiver.open.set()
        await runner.cleanup()


async def _run(url: str, folder: Path, tenants: Tenants, receiver: Receiver) -> None:
    [(owner_id, key)] = tenants.keys.items()
    [webhook_id] = tenants.webhooks[owner_id]
    persons, known = await _stage(url, owner_id)
    sent, waits, _ = persons
    product = Product(folder, url, tenants.key_file)
    await product.start()
    owner = Owner(product, owner_id, key)
    try:
        await _start(product, webhook_id)
        await receiver.first.wait()
        await _until(url, WAITS + 100)
        assert await _made_for(url, persons) == {sent, waits}
        erasures: list[Any] = [
            await owner.call("POST", f"/api/contacts/{person}/erase") for person in persons
        ]
        for erasure in erasures:
            await owner.done(erasure["id"])
        [(state, made)] = await query(url, JOB)
        assert (state, made < UNREACHED) == ("running", True), "the erasure came too late"
        assert receiver.ids() == {sent}
        receiver.got.clear()
        receiver.open.set()
        await _until(url, COUNT + 1)
        assert await until_drained(url, 120.0) == 0
    finally:
        receiver.open.set()
        await owner.http.close()
        await product.close()
    assert [body for body in receiver.got if TRACE.encode() in body] == []
    # All others came.
    assert receiver.ids() == set(known).difference(persons)


async def _made_for(url: str, contacts: list[str]) -> set[str]:
    """Return the contacts for which the snapshot has made an event."""
    named = ", ".join(f"'{one}'" for one in contacts)
    return {
        row[0]
        for row in await query(url, f"select record_id from events where record_id in ({named})")
    }

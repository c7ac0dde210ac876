"""Tests the upsert of a contact by email: one contact, nothing overwritten, its events."""

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gateway
from gateway.domain.contacts import upsert
from gateway.records.audit import Actor
from gateway.records.record import Record
from outbox.database.transaction import Database, Tx
from tests.support.rest import Person, RestApi

[STEP] = (Path(gateway.__path__[0]) / "migrations").glob("*_contact_emails_folded.py")


def actor(who: Person) -> Actor:
    return Actor(who.user_id, "storefront")


async def upserted(api: RestApi, who: Person, email: str, **values: Any) -> Record:
    return await api.db.write(
        upsert.upsert, actor(who), upsert.ContactDetails(email=email, **values)
    )


async def contacts(who: Person) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = (await who.get("/api/contacts?sort=createdAt")).body["data"]
    return records


async def test_a_contact_is_found_by_its_address(api: RestApi, ana: Person) -> None:
    twins = [
        (await ana.post("/api/contacts", {"name": name, "email": email})).body
        for name, email in (("A", "Twin@example.com"), ("B", "twin@example.com"))
    ]
    assert (await upserted(api, ana, "TWIN@example.com")).id == twins[0]["id"]
    await ana.delete(f"/api/contacts/{twins[0]['id']}")
    assert (await upserted(api, ana, "TWIN@example.com")).id == twins[1]["id"]
    await ana.put(f"/api/contacts/{twins[1]['id']}", {"email": "Ação@Exemplo.com.br"})
    assert (await upserted(api, ana, "ac\u0327a\u0303o@exemplo.COM.br")).id == twins[1]["id"]
    assert (await upserted(api, ana, "twin@example.com")).id != twins[1]["id"]


async def test_concurrent_upserts_make_one_contact(api: RestApi, ana: Person) -> None:
    for number in range(10):
        emails = [f"p{number}@example.com", f"P{number}@Example.com"] * 4
        found = await asyncio.gather(
            *(upserted(api, ana, e, tags=[f"t{i}"]) for i, e in enumerate(emails))
        )
        assert len({record.id for record in found}) == 1
    everyone = await contacts(ana)
    assert len(everyone) == 10
    assert all(sorted(c["tags"]) == [f"t{i}" for i in range(8)] for c in everyone)


async def test_the_migration_folds_the_addresses_of_old_contacts(
    api: RestApi, ana: Person, db: Database
) -> None:
    body = {"name": "Old", "email": "ÁGUA@Example.com"}
    old = (await ana.post("/api/contacts", body)).body

    async def forget(tx: Tx) -> None:
        await tx.run("update contacts set email_folded = null")

    await db.write(forget)
    assert not await db.write(step())
    assert (await upserted(api, ana, "água@example.com")).id == old["id"]


def step() -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("step", STEP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    unit: Callable[..., Any] = module.step
    return unit

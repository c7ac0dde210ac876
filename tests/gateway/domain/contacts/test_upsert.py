"""Tests the upsert of a contact by email: one contact, nothing overwritten, its events."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gateway
from gateway.domain.contacts import upsert
from gateway.records.access import Actor
from gateway.records.record import Record
from outbox.database.transaction import Database, Tx
from tests.support.rest import Person, RestApi

[STEP] = (Path(gateway.__path__[0]) / "migrations").glob("*_contact_emails_folded.py")


def actor(who: Person) -> Actor:
    return Actor(who.user_id, "storefront")


async def upserted(api: RestApi, who: Person, email: str, **values: Any) -> Record:
    return await api.db.write(upsert.upsert, actor(who), email=email, **values)


async def contacts(who: Person) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = (await who.get("/api/contacts?sort=createdAt")).body["data"]
    return records


async def test_a_company_of_the_owner_is_linked(api: RestApi, ana: Person, bia: Person) -> None:
    await bia.post("/api/companies", {"name": "Acme"})
    assert (await upserted(api, ana, "a@example.com", company="Acme"))["company_id"] is None
    company = (await ana.post("/api/companies", {"name": "Ácme Ltda"})).body
    for email in ("a@example.com", "b@example.com"):
        contact = await upserted(api, ana, email, company=" acme LTDA")
        assert contact["company_id"] == company["id"]


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

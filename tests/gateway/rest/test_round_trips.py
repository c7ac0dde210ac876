"""Random records of each resource go through files into an account on the other engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE
from gateway.records.resource import Resource
from outbox.database.migrate import migrate
from tests.gateway.rest.test_exports import ODD
from tests.gateway.rest.test_imports import counts, imported
from tests.support.databases import SOURCES
from tests.support.deployed import opened
from tests.support.engines import Engine, empty_database
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving

MANY = 8
"""Records of each resource."""
GIVEN = ("id", "createdAt", "updatedAt", "createdBy", "globalId")
"""What each installation gives a record."""
RESOURCES = {entry.resource.plural: entry.resource for entry in CATALOGUE if entry.create}
ORDER = (
    "companies", "contacts", "stores", "categories", "ebooks", "coupons", "discount-modals",
    "products", "deals", "tasks", "activities", "quotes", "invoices",
)  # fmt: skip
"""The resources, each after those that it refers to."""
Made = Mapping[str, list[str]]
OWN: Mapping[str, Callable[[Random, int], Any]] = {
    "cnpj": lambda dice, n: None if n else "11.222.333/0001-81",
    "email": lambda dice, n: f"p{n // 2}@x.com",
    "phone": lambda dice, n: dice.choice(("+55 11 98888-7777", "(11) 3333-4444", "-11 33")),
    "sku": lambda dice, n: f"{dice.choice(ODD)}{n}",
    "code": lambda dice, n: f"{dice.choice('=+-@')}C{n}",
    "hostname": lambda dice, n: f"s{n}.example.com",
    "aliases": lambda dice, n: [f"www.s{n}.example.com"],
    "slug": lambda dice, n: f"s-{n}",
    "discountPercentage": lambda dice, n: None if n % 2 else dice.randrange(1, 10_001) / 100,
    "discountValue": lambda dice, n: (amount(dice) or 0.01) if n % 2 else None,
    "startsAt": lambda dice, n: f"2026-01-{n + 1:02}",
    "endsAt": lambda dice, n: f"2027-01-{n + 1:02}T22:00:00.123456-03:00",
    "total": lambda dice, n: None,
    "discount": lambda dice, n: dice.choice((None, 0.05)),
    "metadata": lambda dice, n: {"=1": [dice.choice(ODD), 1.5, None], "ção": {}},
    "categories": lambda dice, n: [f"c{dice.choice(ODD)}", "a;b|c,d"],
    "tags": lambda dice, n: [f"t{dice.choice(ODD)}", "a;b|c,d"],
    "images": lambda dice, n: [{"url": "https://x.com/a,b.png", "alt": dice.choice(ODD)}],
}
"""Values of fields that follow from more than their type."""


@asynccontextmanager
async def served(engine: Engine, folder: Path) -> AsyncIterator[tuple[RestApi, Person]]:
    folder.mkdir()
    async with empty_database(engine, folder) as url, opened(url) as db:
        await migrate(db, SOURCES)
        async with serving(db, UNLIMITED) as site:
            api = RestApi(site)
            yield api, await api.person()


def amount(dice: Random) -> float:
    return dice.choice((0, 1500, 1.5, 1234.56, 0.07, 1_000_000, dice.randrange(10**10) / 100))


def day_or_time(dice: Random) -> str:
    """A whole day, or a time; some are past, so that quotes expire and invoices are overdue."""
    day = f"{dice.choice((2025, 2031))}-{dice.randrange(1, 13):02}-{dice.randrange(1, 29):02}"
    return dice.choice((day, f"{day}T22:00:00Z", f"{day}T23:59:59.987654-03:00"))


def value_of(resource: Resource, name: str, dice: Random, number: int, made: Made) -> Any:
    """Return a value of a field; None leaves it out."""
    field = resource.creatable[name]
    schema = field.format.schema
    if field.reference is not None:
        ids = made.get(field.reference.table, [])
        if field.listed_in:
            return dice.sample(ids, 2)
        return dice.choice(ids) if ids else None
    if name in OWN:
        return OWN[name](dice, number)
    if name == "items":
        line = {"description": f"x{dice.choice(ODD)}", "quantity": dice.choice((1, 1.5, 0.125))}
        price = round(2 + amount(dice), 2)
        line |= {"unitPrice": price, "productId": dice.choice(made["products"])}
        return [line, {"description": "y", "quantity": 3, "unitPrice": 0.35}]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    if "anyOf" in schema:
        return day_or_time(dice)
    match schema["type"]:
        case "boolean":
            return dice.random() < 0.5
        case "integer":
            return dice.randrange(max(schema["minimum"], 1), schema["maximum"] + 1)
        case "number":
            return amount(dice)
    if schema["type"] == "string" and schema.get("pattern", "").endswith(r"[^\u0000]*$"):
        return f"{name[:20]} {number} {dice.choice(ODD)}ção ☕"
    if schema.get("pattern") == r"^[^\u0000]*$":
        return dice.choice(("", *ODD))
    return field.example


def body_of(resource: Resource, dice: Random, number: int, made: Made) -> dict[str, Any]:
    """Return the body of a create, with some of the optional fields."""
    body = {}
    for name, field in resource.creatable.items():
        if field.required or name.startswith("discount") or dice.random() < 0.7:
            body[name] = value_of(resource, name, dice, number, made)
    if resource.plural == "activities":
        body["relatedType"] = dice.choice(("contact", "company", "deal"))
        plurals = {"contact": "contacts", "company": "companies", "deal": "deals"}
        body["relatedTo"] = dice.choice(made[plurals[body["relatedType"]]])
    if resource.plural in ("categories", "products"):
        # Slugs and names are unique within a store, and so is a tree.
        body["storeId"] = made["stores"][0]
    if resource.plural == "invoices":
        body.setdefault("items", value_of(resource, "items", dice, number, made))
        body.pop("quoteId", None)
    return {name: value for name, value in body.items() if value is not None}


async def move_on(who: Person, plural: str, record_id: str, dice: Random) -> None:
    """Bring a record to a random state, as a user would."""
    path = f"/api/{plural}/{record_id}"
    reason = {"reason": dice.choice(ODD)}
    paid = {"method": "pix", "reference": dice.choice(ODD), "paidAt": day_or_time(dice)}
    ways: Mapping[str, list[list[tuple[str, Any]]]] = {
        "tasks": [[("/complete", None)]],
        "deals": [[("", {"status": "won"})], [("", {"status": "lost", "lostReason": "=x"})]],
        "quotes": [
            [("", {"validUntil": "2099-12-31"}), ("/send", None), (verb, None), *more]
            for verb, more in (
                ("/accept", [("/convert", {"dueDate": "2031-05-10"})]), ("/accept", []),
                ("/reject", []), ("/cancel", []),
            )
        ] + [[("/accept", None)]],
        "invoices": [[("/pay", paid)], [("/pay", {})], [("/cancel", reason)]],
    }  # fmt: skip
    for verb, body in dice.choice([[], *ways.get(plural, [])]):
        call = who.post if verb else who.put
        reply = await call(path + verb, body)
        if verb == "/accept" and reply.status == 409:
            # Its time has passed.
            continue
        assert reply.status in (200, 201), (path, verb, reply.text)


async def records_of(who: Person) -> dict[str, list[dict[str, Any]]]:
    """Return all records in the order of creation; ids are named by what they are of."""
    all_of = {}
    for plural in ORDER:
        rows = await who.get(f"/api/{plural}?limit=100&sort=createdAt")
        all_of[plural] = rows.body["data"]
    # A file has each category after the one above it.
    all_of["categories"].sort(key=lambda one: one["slug"])
    names = {
        record["id"]: f"{plural} {place}"
        for plural, records in all_of.items()
        for place, record in enumerate(records)
    }

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: named(one) for key, one in value.items() if key not in GIVEN}
        if isinstance(value, list):
            return [named(one) for one in value]
        return names.get(value, value) if isinstance(value, str) else value

    return {plural: [named(one) for one in records] for plural, records in all_of.items()}


async def stock(who: Person, dice: Random) -> None:
    """Create records of each resource, some with one request."""
    assert {*ORDER} == {*RESOURCES}
    made: dict[str, list[str]] = {}
    for plural in ORDER:
        bodies = [body_of(RESOURCES[plural], dice, n, made) for n in range(MANY)]
        reply = await who.post(f"/api/{plural}/batch", {"items": bodies, "atomic": True})
        assert reply.status == 207, reply.text
        ids = made[plural] = [one["id"] for one in reply.body["results"]]
        if plural == "categories":
            # A category below one that is younger, and one below that.
            for child, above in ((1, 5), (5, 7)):
                changed = await who.put(f"/api/categories/{ids[child]}", {"parentId": ids[above]})
                assert changed.status == 200, changed.text
        for record_id in ids:
            await move_on(who, plural, record_id, dice)


async def check(one: Engine, other: Engine, seed: int, folder: Path) -> None:
    dice = Random(seed)
    async with AsyncExitStack() as stack:
        here, ana = await stack.enter_async_context(served(one, folder / "a"))
        there, bia = await stack.enter_async_context(served(other, folder / "b"))
        await here.move(ana, "America/Sao_Paulo")
        await there.move(bia, "Pacific/Kiritimati")
        await stock(ana, dice)
        before = await records_of(ana)
        files = {}
        for plural in ORDER:
            asked = dice.choice(("", "?separator=;&bom=true&numbers=1.234,56", "?separator=tab"))
            files[plural] = (await ana.get(f"/api/export/{plural}.csv{asked}")).text
        for plural, file in files.items():
            body = await imported(there, bia, plural, file)
            rows = len(before[plural])
            got = (*counts(body), body["warnings"])
            assert got == (rows, rows, 0, 0, 0, 0), (plural, seed, body)
        after = await records_of(bia)
        for plural in ORDER:
            assert after[plural] == before[plural], (plural, seed)
        events = len(await there.events())
        for who, api in ((bia, there), (ana, here)):
            for plural, file in files.items():
                body = await imported(api, who, plural, file)
                rows = len(before[plural])
                got = (*counts(body), body["warnings"])
                assert got == (rows, 0, 0, rows, 0, 0), (plural, seed, body)
        assert len(await there.events()) == events
        assert await records_of(ana) == before


@pytest.mark.slow
async def test_the_other_engine_gets_the_same_records(tmp_path: Path) -> None:
    await check("sqlite", "postgres", 1, tmp_path)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(2, 22))
async def test_random_records_come_back(seed: int, tmp_path: Path) -> None:
    engines: list[Engine] = ["sqlite", "postgres"]
    await check(engines[seed % 2], engines[1 - seed % 2], seed, tmp_path)

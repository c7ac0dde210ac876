"""Every page and every form of the console: who may use it, and what an id of nothing gets.

The addresses are those of the router, so that a new page is tested without a line here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from gateway.console.routes import add_console
from gateway.domain.catalogue import RESOURCES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.privacy import certificates
from gateway.domain.privacy.persons import Persons
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import check
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database
from tests.gateway.console.deliveries.test_steering import waiting
from tests.support.console import Guest, Seen
from tests.support.drain import rows
from tests.support.site import Site
from tests.support.stocked import stock

NOTHING = ("f" * 24, "x", "%00", "..%2f..", "é")
NOT_HERS = (403, 404)
KEPT = (
    "webhooks", "deliveries", "events", "jobs", "imports", "api_keys",
    *(resource.table for resource in RESOURCES),
)  # fmt: skip
END_SESSION = "/console/account/sessions/{id}/end"
"""It says nothing of the session: whoever sends it comes back to their own page."""


def routes() -> list[tuple[str, str]]:
    """Return method and path of every page and every form that needs an account."""
    router = web.UrlDispatcher()
    add_console(router)
    public = (
        "/console/static", "/console/sign-in", "/console/first-account", "/console/connect/token",
        "/console/forgotten-password", "/console/reset-password", "/console/confirm-email",
        "/console/{rest", "/documents",
    )  # fmt: skip
    return [
        (route.method, route.resource.canonical.replace("{plural}", "contacts"))
        for route in router.routes()
        if route.resource is not None
        and route.method in ("GET", "POST")
        and not route.resource.canonical.startswith(public)
        and route.resource.canonical != "/"
    ]


@dataclass(frozen=True)
class Place:
    """A record of Maria's for each address: its id by the first word of the path."""

    maria: Guest
    ids: dict[str, str]

    def path(self, pattern: str, record_id: str = "") -> str:
        return pattern.replace("{id}", record_id or self.ids[pattern.split("/")[2]])


@pytest.fixture
async def place(console: Site, maria: Guest) -> Place:
    db = console.db
    webhook_id, deliveries = await waiting(console, maria, 2, "dead")
    [user] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    await console.key(user["id"])
    stocked = await stock(db, user["id"], 1)
    fields: dict[str, Any] = {
        "kind": "recover", "ends": "dead", "since": "2020-01-01", "rate": "5", "confirmed": "count",
    }  # fmt: skip
    job = await maria.submit(f"/console/webhooks/{webhook_id}/recover", **fields)
    # A running job would go on meanwhile.
    await maria.submit(f"/console/jobs/{job.id}/cancel", at=f"/console/jobs/{job.id}")
    imported = await maria.upload("/console/import/contacts", b"name\nAna\n")
    [event] = await db.read(rows, "select id from events order by pos limit 1")
    [key] = await db.read(rows, "select id from api_keys")
    contact, erasure = await erased(maria)
    [session] = await db.read(rows, "select id from sessions")
    return Place(
        maria,
        {
            "webhooks": webhook_id, "deliveries": deliveries[1], "jobs": job.id,
            "imports": imported.id,
            "events": event["id"], "keys": key["id"], "account": session["id"],
            **{resource.plural: stocked[resource.table] for resource in RESOURCES},
            "privacy": contact["id"], "erasures": erasure.id,
        },
    )  # fmt: skip


async def erased(maria: Guest) -> tuple[Any, Any]:
    """Return a contact of Maria's, and the erasure of another one."""
    [user] = await maria.site.db.read(
        rows, "select id from users where email = 'maria@example.com'"
    )
    actor = Actor(user["id"], "session")
    made = [
        await maria.site.db.write(
            actions.create, actor, CONTACTS, check(CONTACTS, {"name": name}, creating=True)
        )
        for name in ("Ana", "Rita")
    ]
    erasure = await maria.site.db.write(certificates.request, actor, CONTACTS, made[1].id)
    # Later the duty would change rows while they are compared.
    await Persons(maria.site.db, maria.site.app[KEYRING]).run_once()
    return {"id": made[0].id}, erasure


async def kept(db: Database) -> dict[str, list[str]]:
    """Return every row that a page or a form can change, as text."""

    async def texts(table: str) -> list[str]:
        rows_read = await db.read(rows, f"select * from {table}")
        return sorted(repr([row[name] for name in row.keys()]) for row in rows_read)  # noqa: SIM118 - a row is no mapping

    return {table: await texts(table) for table in KEPT}


FIELDS = [
    ("url", "https://forged.example/"), ("events", "deal.created"), ("event", "deal.created"),
    ("parked", "all"), ("name", "Forged"), ("hostname", "forged.example"), ("kind", "recover"),
    ("since", "2020-01-01"), ("ends", "dead"), ("rate", "5"), ("confirmed", "count"),
]  # fmt: skip
"""Enough for each form to be accepted from its owner."""


async def test_only_its_owner_reaches_a_record(
    console: Site, place: Place, rui: Guest, nobody: Guest
) -> None:
    before = await kept(console.db)
    tokens = {
        guest: (await guest.get(home)).csrf
        for guest, home in (
            (place.maria, "/console/account"), (rui, "/console/account"),
            (nobody, "/console/sign-in"),
        )
    }  # fmt: skip

    async def use(guest: Guest, method: str, path: str) -> Seen:
        if method == "GET":
            return await guest.get(path)
        if path.endswith("/images"):
            return await guest.upload(path, b"no picture", token=tokens[guest])
        return await guest.post(path, [("csrf_token", tokens[guest]), *FIELDS])

    for method, path in [(method, path) for method, path in routes() if "{id}" in path]:
        mine, says = place.path(path), path != END_SESSION
        assert method == "POST" or (await place.maria.get(mine)).status == 200, path
        assert (await use(nobody, method, mine)).path.startswith("/console/sign-in"), path
        page = await use(rui, method, mine)
        assert not says or page.status in NOT_HERS, path
        for record_id in NOTHING:
            page = await use(place.maria, method, place.path(path, record_id))
            assert not says or page.status == 404, (path, record_id)
    assert await kept(console.db) == before
    assert (await place.maria.get("/console")).path == "/console"


async def test_a_form_needs_the_token_of_its_own_browser(
    console: Site, place: Place, rui: Guest
) -> None:
    before, maria = await kept(console.db), place.maria
    others = (await rui.get("/console/account")).csrf
    mine = [("csrf_token", (await maria.get("/console/account")).csrf), *FIELDS]
    elsewhere: list[dict[str, Any]] = [
        {"Origin": "https://evil.example"}, {"Sec_Fetch_Site": "cross-site"},
    ]  # fmt: skip
    for path in [path for method, path in routes() if method == "POST"]:
        where = place.path(path) if "{id}" in path else path
        for token in ((), ("0" * 64,), ("é",), (others,)):
            page = await maria.post(where, [*(("csrf_token", text) for text in token), *FIELDS])
            assert (page.status, "This form has expired" in page.html) == (403, True), path
        for headers in elsewhere:
            page = await maria.post(where, mine, **headers)
            assert (page.status, "another site" in page.html) == (403, True), path
    assert await kept(console.db) == before
    assert (await maria.get("/console")).path == "/console"


async def test_no_page_shows_what_others_own(console: Site, place: Place, rui: Guest) -> None:
    mine = set(place.ids.values())
    lists = [path for method, path in routes() if method == "GET" and "{" not in path]
    for path in lists:
        page = await rui.get(path)
        assert page.status in (200, 400), path
        assert not mine & set(re.findall("[0-9a-f]{24}", page.html)), path
    for path in ("/console/deliveries", "/console/events"):
        for word in ("r", *mine):
            page = await rui.get(f"{path}?q={word}")
            assert not mine & set(re.findall('id="[de]-([0-9a-f]{24})', page.html)), (path, word)
    page = await rui.submit(
        "/console/deliveries/selected", at="/console/account",
        delivery=place.ids["deliveries"], act="cancel",
    )  # fmt: skip
    assert page.status in NOT_HERS

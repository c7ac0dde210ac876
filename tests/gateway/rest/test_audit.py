"""The audit log: who changed which record and which fields, of every route that writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE, RESOURCES
from gateway.domain.imports import import_jobs
from gateway.records.audit import Actor
from gateway.records.resource import Resource
from gateway.rest.document.operations import path_of
from gateway.rest.routes import ROUTES
from gateway.server.config import Auth, Config
from outbox.database.transaction import Database, Row, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep.erasure_requests import request as erase_events
from tests.gateway.rest.test_imports import imported, upload
from tests.gateway.rest.test_resources import Town, town_of
from tests.gateway.server.images.test_product_images import drawn, file_of
from tests.support.document import DOCUMENT, answer_faults
from tests.support.drain import add_webhook, ring
from tests.support.kept_pages import kept_pages_are_true
from tests.support.orders import placed, product
from tests.support.provider import Adapter, stage
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.shop import Shop
from tests.support.site import PASSWORD, serving
from tests.support.stocked import stock
from tests.support.tables import in_turn

ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)
CONFIG = Config(limits=UNLIMITED.limits, auth=Auth(signup="open"))
WRITES = {(method, path) for method, path, _ in ROUTES if method != "GET"}
TEXTS = ("name", "title", "notes", "description")
"""A field of each resource that a change sets to another text."""
OTHERS: Mapping[str, dict[str, Any]] = {
    "reviews": {"status": "rejected"},
    "coupons": {"maxUses": 7},
}
"""A change of a resource without such a field."""


@pytest.fixture
async def api(db: Database) -> AsyncIterator[RestApi]:
    async with serving(db, CONFIG) as site:
        yield RestApi(site)
        await kept_pages_are_true(site)


async def rows_of(tx: Tx, owner_id: str) -> list[Row]:
    return await tx.all("select * from audit where owner_id = $1 order by id", owner_id)


async def entries(person: Person, query: str = "") -> list[dict[str, Any]]:
    reply = await person.get(f"/api/audit{query}")
    assert reply.status == 200, reply.text
    assert answer_faults("GET", "/api/audit", 200, reply.body) == []
    found: list[dict[str, Any]] = reply.body["data"]
    return found


class Walk:
    """Requests of an owner, by `key`, each with what it leaves in the log."""

    def __init__(self, api: RestApi, owner: Person, key: Person) -> None:
        self.api, self.owner, self.key = api, owner, key
        self.done: set[tuple[str, str]] = set()
        self._seen: set[str] = set()

    async def new(self) -> list[Row]:
        """Return the entries since the last call."""
        rows = await self.api.db.read(rows_of, self.owner.user_id)
        new = [row for row in rows if row["id"] not in self._seen]
        self._seen |= {row["id"] for row in new}
        return new

    async def __call__(
        self, method: str, pattern: str, record_id: str = "", body: Any = None, *,
        by: str = "api_key", who: Person | None = None, says: Sequence[str], **more: Any,
    ) -> Reply:  # fmt: skip
        """Send a request that succeeds, and check that it leaves an entry like each of `says`.

        Each is `action resource: field,…`; an entry may have further fields.
        """
        await self.new()
        path = pattern.replace("{id}", record_id)
        caller = who or self.key
        reply = await caller.call(method, path, body, X_Request_Id="walk-1", **more)
        assert reply.status < 300, (method, path, reply.text)
        left = await self.new()
        told = {(row["action"], row["resource"]): row["fields"].split(",") for row in left}
        for words in says:
            action, _, what = words.partition(" ")
            resource, _, fields = what.partition(": ")
            named = told.get((action, resource), ())
            assert {*fields.split(",")} <= {*named, ""}, (method, path, told)
            assert (action, resource) in told, (method, path, told)
        # Erasures and imports go on meanwhile, by themselves.
        assert {row["actor"] for row in left if row["actor"] != "system"} == {by}, path
        assert "walk-1" in {row["request_id"] for row in left}
        assert answer_faults(method, pattern, reply.status, reply.body) == []
        if caller is not self.owner and "Written" in _schema(method, pattern, reply.status):
            # A repeat, or a read that comes with it, may tell no more.
            assert set(reply.body) <= {"id"}, (method, path, reply.text)
        self.done.add((method, pattern))
        return reply


def _schema(method: str, pattern: str, status: int) -> str:
    responses = DOCUMENT["paths"][pattern][method.lower()]["responses"]
    return json.dumps(responses[str(status)]["content"]["application/json"]["schema"])


async def walked(api: RestApi, scopes: Sequence[str] = ()) -> set[tuple[str, str]]:
    """Use every route that writes, with a key of these `scopes` in place of one for all.

    Return them.
    """
    owner = await api.key_of(await api.site.user())
    key = await api.key_of(owner.user_id, scopes) if scopes else owner
    walk, town = Walk(api, owner, key), await town_of(api, owner)
    token = Person(
        owner._http, owner.user_id, {"Authorization": f"Bearer {await api.site.token()}"}
    )
    for entry in CATALOGUE:
        await _of_resource(walk, town, entry.resource, entry.create is not None)
    await _verbs(walk)
    await _shop(walk)
    await _account(walk, token)
    await _deliveries(walk)
    await _image(walk)
    return walk.done


async def _image(walk: Walk) -> None:
    route = ("POST", "/api/products/{id}/images")
    if walk.api.db.engine == "postgres":
        # It has no folder of its own for images.
        walk.done.add(route)
        return
    made = await walk.owner.post("/api/products", {"name": "Coffee", "price": 10})
    await walk(
        *route, made.body["id"], data=file_of(drawn(), "PNG"), Content_Type="image/png",
        says=["updated product: images"],
    )  # fmt: skip


async def _of_resource(walk: Walk, town: Town, resource: Resource, made: bool) -> None:
    path, noun = path_of(resource), resource.noun
    record_id = town.ids[resource.table]
    if made:
        reply = await walk("POST", path, body=town.body(resource), says=[f"created {noun}"])
        record_id = reply.body["id"]
    for method in ("PUT", "PATCH") if ("PUT", f"{path}/{{id}}") in WRITES else ():
        name = next((one for one in TEXTS if one in resource.changeable), "")
        change = OTHERS.get(resource.table) or {name: f"By {method}"}
        if method == "PATCH":
            change = {"status": "published"} if resource.table == "reviews" else change
            change = {"maxUses": 8} if resource.table == "coupons" else change
        says = f"updated {noun}: {','.join(change)}"
        await walk(method, f"{path}/{{id}}", record_id, change, says=[says])
    if resource.deletable and made:
        # Its dependants go with it, and count as it.
        await walk("DELETE", f"{path}/{{id}}", record_id, says=[f"deleted {noun}"])
    elif resource.deletable:
        action = "erased" if resource.table == "customers" else "deleted"
        await walk("DELETE", f"{path}/{{id}}", record_id, says=[f"{action} {noun}"])
    if made:
        batch = {"items": [town.body(resource)]}
        await walk("POST", f"{path}/batch", body=batch, says=[f"created {noun}"])
        heading = ",".join(resource.required)
        job = await walk(
            "POST", f"/api/import/{resource.plural}", data=f"{heading}\nx".encode(),
            Content_Type="text/csv", says=["imported import"],
        )  # fmt: skip
        await walk.owner.delete(f"/api/imports/{job.body['id']}")


async def _verbs(walk: Walk) -> None:
    owner = walk.owner
    task = (await owner.post("/api/tasks", {"title": "Call", "dueDate": "2030-01-01"})).body["id"]
    done = "updated task: completed,completedAt"
    await walk("POST", "/api/tasks/{id}/complete", task, says=[done])
    await walk("POST", "/api/tasks/{id}/reopen", task, says=[done])
    line = {"items": [{"description": "x", "quantity": 1, "unitPrice": 5}]}

    async def quote(*words: str) -> str:
        made = str((await owner.post("/api/quotes", line)).body["id"])
        for word in words:
            await owner.post(f"/api/quotes/{made}/{word}")
        return made

    for word, before in (
        ("send", ()),
        ("accept", ("send",)),
        ("reject", ("send",)),
        ("cancel", ()),
    ):
        reply = await walk("POST", f"/api/quotes/{{id}}/{word}", await quote(*before), says=[])
        [entry] = await entries(owner, f"?recordId={reply.body['id']}&limit=1")
        assert entry["action"] == "updated"
        assert "status" in entry["fields"]
    accepted = await quote("send", "accept")
    says = ["created invoice", "updated quote: invoiceId"]
    await walk("POST", "/api/quotes/{id}/convert", accepted, {}, says=says)
    for word in ("pay", "cancel"):
        due = {"total": 5, "dueDate": "2030-01-01"}
        invoice = (await owner.post("/api/invoices", due)).body["id"]
        await walk("POST", f"/api/invoices/{{id}}/{word}", invoice, {}, says=[])
    due = {"total": 5, "dueDate": "2030-01-01"}
    invoice = (await owner.post("/api/invoices", due)).body["id"]
    for noun, one in (("quote", await quote()), ("invoice", invoice)):
        path = f"/api/{noun}s/{{id}}/link"
        await walk("POST", path, one, says=[f"sent {noun}: link"])
        await walk("DELETE", path, one, says=[f"revoked {noun}: link"])
    # It needs a mail server: see tests/gateway/console/crm/test_document_mails.py.
    walk.done.add(("POST", "/api/invoices/{id}/send"))
    contact = {"name": "Carla", "email": "carla@example.com"}
    await walk("POST", "/api/contacts/upsert", body=contact, says=["created contact"])
    for first, path, table in ((8, "contacts", "contacts"), (9, "clients", "customers")):
        more = await stock(walk.api.db, owner.user_id, 1, first)
        noun = path.removesuffix("s")
        erase = f"/api/{path}/{{id}}/erase"
        await walk("POST", erase, more[table], says=[f"erased {noun}"])
    # It waits for its file, and so for nothing that runs meanwhile.
    job = await walk.api.db.write(import_jobs.begin, Actor(owner.user_id, "session"), "contacts")
    await walk("DELETE", "/api/imports/{id}", job, says=["canceled import"])
    pipeline = {"stages": ["new", "won"]}
    await walk("PUT", "/api/settings/pipeline", body=pipeline, says=["updated pipeline: stages"])
    says = ["updated company_settings: tradeName"]
    await walk("PUT", "/api/settings/company", body={"tradeName": "Café"}, says=says)


async def _shop(walk: Walk) -> None:
    api, owner = walk.api, walk.owner
    made = await owner.post("/api/stores", {"hostname": "walk.example", "name": "Walk"})
    shop = Shop(api, owner, made.body)
    looks, says = "/api/stores/{id}/hostnames/check", ["hastened store: hostname"]
    await walk("POST", looks, made.body["id"], {}, says=says)
    item = await product(owner)
    orders = [await placed(shop, {item: 1}) for _ in range(3)]
    says = ["updated order: status"]
    await walk("POST", "/api/orders/{id}/cancel", orders[0]["id"], {}, says=[*says])
    await walk("POST", "/api/orders/cancel", body={"ids": [orders[1]["id"]]}, says=[*says])
    adapter = Adapter(shop, await stage(shop))
    await walk.new()
    reported = await adapter.report(orders[2]["number"], 30)
    assert reported.status == 200, reported.text
    left = await walk.new()
    assert {row["resource"] for row in left} == {"invoice", "order", "deal"}
    assert {(row["actor"], row["actor_id"]) for row in left} == {("system", "payment")}
    walk.done.add(("POST", "/api/payments/callback/{id}"))


async def _account(walk: Walk, token: Person) -> None:
    api, owner = walk.api, walk.owner
    await walk("PATCH", "/api/me", body={"name": "Ana"}, says=["updated account: name"])
    key = await walk(
        "POST", "/api/keys", body={"name": "k"}, who=token, by="token", says=["created key"]
    )
    await walk(
        "DELETE", "/api/keys/{id}", key.body["id"], who=token, by="token", says=["revoked key"]
    )
    mail = {"email": "maria@example.com", "password": PASSWORD}
    await walk(
        "POST", "/api/auth/token", body=mail, who=api.nobody, by="token", says=["signed_in token"]
    )
    await walk("DELETE", "/api/auth/token", who=token, by="token", says=["signed_out token"])
    sent = {"email": "new@example.com", "password": PASSWORD, "name": "New"}
    made = await api.nobody.post("/api/auth/signup", sent)
    [row] = await api.db.read(rows_of, made.body["id"])
    assert (row["actor"], row["action"], row["resource"]) == ("account", "created", "account")
    walk.done.add(("POST", "/api/auth/signup"))
    assert owner.user_id != made.body["id"]


async def _deliveries(walk: Walk) -> None:
    delivery = await delivered(walk.api, walk.owner)
    says = ["replayed delivery"]
    await walk("POST", "/api/deliveries/{id}/replay", delivery["id"], says=says)
    await walk.api.db.write(chained)
    await walk("POST", "/api/log/checkpoints", says=["created checkpoint"])


async def chained(tx: Tx) -> None:
    """Give each webhook a log with an attempt."""
    await tx.run("update lanes set chain_place = 1, chain_digest = $1", "0" * 64)


async def delivered(api: RestApi, owner: Person) -> dict[str, Any]:
    """Return a delivery of a new contact to a new webhook, as the REST API lists it."""
    await add_webhook(
        api.db, ring(), "https://hooks.example.com/", "contact.created", owner=owner.user_id
    )
    made = await owner.post("/api/contacts", {"name": "Bruno"})
    await api.db.write(fan_out, ROOM)
    page = await owner.get(f"/api/deliveries?recordId={made.body['id']}")
    [found] = page.body["data"]
    return dict(found)


@pytest.mark.slow
async def test_every_route_that_writes_leaves_an_entry(api: RestApi) -> None:
    assert await walked(api) == WRITES


@pytest.mark.slow
async def test_a_key_that_only_writes_is_refused_at_no_route_that_writes(api: RestApi) -> None:
    """It gets the id alone: a read after the write would be a 403 for what was done."""
    assert await walked(api, ["write"]) == WRITES


async def test_an_export_and_an_import_are_told(api: RestApi, ana: Person) -> None:
    made = await imported(api, ana, "contacts", "name\nBruno\n")
    assert made["created"] == 1
    assert (await ana.get("/api/export/contacts.csv")).status == 200
    dry = await upload(ana, "contacts", "name\nBruno\n", "?dryRun=true")
    assert dry.status == 202
    told = [
        (one["actor"]["kind"], one["actor"]["name"], one["action"], one["resource"])
        for one in await entries(ana)
    ]
    assert told[:3] == [
        ("api_key", "test", "exported", "contact"), ("system", "import", "created", "contact"),
        ("api_key", "test", "imported", "import"),
    ]  # fmt: skip


async def test_a_write_that_fails_leaves_nothing(api: RestApi, ana: Person) -> None:
    before = len(await entries(ana, "?limit=100"))
    made = await ana.post("/api/contacts", {"name": "x" * 500})
    assert made.status == 400
    store = {"hostname": "one.example", "name": "One"}
    assert (await ana.post("/api/stores", store)).status == 201
    assert (await ana.post("/api/stores", store)).status == 409
    assert len(await entries(ana, "?limit=100")) == before + 1


async def test_the_log_is_that_of_the_caller(api: RestApi, ana: Person, bia: Person) -> None:
    made = await ana.post("/api/contacts", {"name": "Bruno"})
    mine = await entries(ana)
    assert await entries(bia, f"?recordId={made.body['id']}") == []
    assert await entries(bia, f"?actor={mine[0]['actor']['id']}") == []
    assert made.body["id"] not in (await bia.get("/api/audit")).text
    # A cursor is a place, so another's is as good as any.
    theirs = await bia.get(f"/api/audit?after={mine[0]['id']}")
    assert made.body["id"] not in theirs.text
    for method in ("DELETE", "POST", "PUT"):
        assert (await ana.call(method, "/api/audit", {})).status == 405
    assert (await api.nobody.get("/api/audit")).status == 401
    blind = await api.key_of(ana.user_id, ["write"])
    assert (await blind.get("/api/audit")).status == 403


@in_turn("after", ["x", "0" * 23, "g" * 24, "%00", "%ff", "0" * 25])
async def test_an_invalid_after_is_refused(api: RestApi, ana: Person, after: str) -> None:
    reply = await ana.get(f"/api/audit?after={after}")
    assert (reply.status, reply.faults) == (400, {"after": "invalid_parameter"})


async def test_no_value_of_a_record_is_in_the_log(api: RestApi, ana: Person) -> None:
    """Marked values everywhere, also in names of keys and webhooks, then erased."""
    town = await town_of(api, ana)
    marked = "Zzmarked"
    for entry in CATALOGUE:
        resource = entry.resource
        texts = {
            name: marked
            for name, field in resource.creatable.items()
            if name in TEXTS and field.reference is None
        }
        if entry.create is not None:
            made = await ana.post(path_of(resource), town.body(resource) | texts)
            assert made.status == 201, made.text
        if entry.change is not None:
            changed = {name: f"{marked}!" for name in texts if name in resource.changeable}
            assert (await ana.put(town.path(resource), changed)).status == 200
    mail = {"name": marked, "email": f"{marked}@example.com", "phone": "11 97777-1234"}
    contact = (await ana.post("/api/contacts", mail)).body
    await ana.call("PATCH", "/api/me", {"name": marked})
    await api.db.write(erase_events, ana.user_id, [contact["id"]])
    rows = await api.db.read(rows_of, ana.user_id)
    assert len(rows) > 2 * len(RESOURCES) - 5
    stored = json.dumps([[row[name] for name in row.keys()] for row in rows])  # noqa: SIM118 - a row is no mapping
    for secret in (marked, "97777", "example.com", "Bruno"):
        assert secret.lower() not in stored.lower(), secret

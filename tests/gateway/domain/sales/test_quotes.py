"""Tests quotes over HTTP: amounts, states, expiry, and conversion to invoices."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.sales.quotes import EARLIEST, TRANSITIONS, expire_quotes
from gateway.server.app_keys import CREDENTIALS
from gateway.server.config import Retention
from gateway.server.telemetry.metrics import METRICS
from gateway.server.upkeep.duties import BATCHES, Upkeep
from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
DAY = 86_400_000_000
LINE: dict[str, Any] = {"description": "Coffee", "quantity": 2, "unitPrice": 10}
VERBS = {"sent": "send", "accepted": "accept", "rejected": "reject", "canceled": "cancel"}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/quotes", {"items": [LINE]} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def in_state(who: Person, state: str, **body: Any) -> str:
    """Create a quote in `state` and return its path."""
    path = f"/api/quotes/{(await create(who, **body))['id']}"
    steps = {"draft": [], "rejected": ["sent", "rejected"], "expired": ["sent", "expired"]}
    for step in steps.get(state, [state]):
        assert (await who.put(path, {"status": step})).status == 200
    return path


async def events(api: RestApi, kind: str = "") -> list[tuple[str, dict[str, Any]]]:
    async def unit(tx: Any) -> Any:
        return await tx.all("select name, body from events order by pos")

    rows = await api.db.read(unit)
    announced = [(row["name"], json.loads(bytes(row["body"]))["data"]) for row in rows]
    return [(name, data) for name, data in announced if name.startswith(kind)]


async def test_create_returns_the_record(api: RestApi, ana: Person) -> None:
    contact = (await ana.post("/api/contacts", {"name": "C"})).body["id"]
    reply = await ana.post(
        "/api/quotes",
        {"items": [LINE, LINE | {"quantity": 0.5, "unitPrice": 0.03}], "discount": 1.5,
         "contactId": contact, "validUntil": "2999-01-31", "notes": "n"},
    )  # fmt: skip
    quote = reply.body
    assert reply.status == 201
    assert quote == {
        "id": quote["id"], "number": "Q-000001", "status": "draft", "items": [
            LINE | {"id": quote["items"][0]["id"], "discount": 0, "total": 20},
            LINE | {"id": quote["items"][1]["id"], "quantity": 0.5, "unitPrice": 0.03,
                    "discount": 0, "total": 0.02},
        ],
        "subtotal": 20.02, "discount": 1.5, "total": 18.52, "currency": "BRL",
        "contactId": contact, "validUntil": "2999-01-31T00:00:00.000Z", "notes": "n",
        "createdAt": quote["createdAt"],
    }  # fmt: skip
    assert (await ana.get(reply.headers["Location"])).body == quote
    assert await events(api, "quote") == [
        ("quote.created", {
            "id": quote["id"], "number": "Q-000001", "total": 18.52, "status": "draft",
            "createdAt": quote["createdAt"],
        }),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({}, {"items": "required"}),
        ({"items": None}, {"items": "not_nullable"}),
        ({"items": []}, {"items": "too_few"}),
        ({"items": [LINE], "total": 19}, {"total": "disagrees"}),
        ({"items": [LINE], "discount": 21}, {"discount": "too_large"}),
        ({"items": [LINE], "validUntil": "soon"}, {"validUntil": "invalid_date"}),
        ({"items": [LINE], "dealId": NOWHERE}, {"dealId": "invalid_reference"}),
        (
            {"items": [LINE | {"productId": NOWHERE}], "contactId": "x"},
            {"items[0].productId": "invalid_reference", "contactId": "invalid_reference"},
        ),
    ],
)
async def test_an_invalid_quote_takes_no_number(
    ana: Person, body: dict[str, Any], faults: dict[str, str]
) -> None:
    reply = await ana.post("/api/quotes", body)
    assert (reply.status, reply.faults) == (400, faults)
    assert (await create(ana))["number"] == "Q-000001"


@pytest.mark.parametrize("state", TRANSITIONS)
async def test_every_move_by_put_and_by_verb(api: RestApi, ana: Person, state: str) -> None:
    for target in TRANSITIONS:
        legal = target in TRANSITIONS[state]
        path = await in_state(ana, state)
        before = await ana.get(path)
        told = len(await events(api, "quote.updated"))
        reply = await ana.put(path, {"status": target})
        if target == state:
            assert (reply.status, reply.headers["ETag"]) == (200, before.headers["ETag"])
        elif legal:
            assert (reply.status, reply.body["status"]) == (200, target)
        else:
            assert (reply.status, reply.body["code"]) == (409, "invalid_transition")
            assert reply.body["allowed"] == [*TRANSITIONS[state]]
            assert (await ana.get(path)).text == before.text
        assert len(await events(api, "quote.updated")) == told + legal
        if target in VERBS:
            path = await in_state(ana, state)
            told = len(await events(api, "quote.updated"))
            reply = await ana.post(f"{path}/{VERBS[target]}")
            assert reply.status == (200 if legal else 409), (state, target)
            assert (await ana.get(path)).body["status"] == (target if legal else state)
            assert len(await events(api, "quote.updated")) == told + legal


async def test_each_transition_sets_its_time_and_emits_an_event(api: RestApi, ana: Person) -> None:
    path = await in_state(ana, "draft")
    sent = (await ana.post(f"{path}/send")).body
    assert sent["sentAt"] == sent["updatedAt"]
    accepted = (await ana.post(f"{path}/accept")).body
    assert accepted["acceptedAt"] == accepted["updatedAt"]
    assert accepted["sentAt"] == sent["sentAt"]
    rejected = (await ana.get(await in_state(ana, "rejected"))).body
    assert rejected["rejectedAt"] == rejected["updatedAt"]
    number = accepted["number"]
    assert (await events(api, "quote.updated"))[:2] == [
        (
            "quote.updated",
            {"id": q["id"], "number": number, "status": s, "updatedAt": q["updatedAt"]},
        )
        for q, s in ((sent, "sent"), (accepted, "accepted"))
    ]


async def test_content_is_writable_only_in_a_draft(api: RestApi, ana: Person) -> None:
    path = await in_state(ana, "draft")
    reply = await ana.put(path, {"discount": 5, "notes": "n", "status": "sent"})
    assert (reply.status, reply.body["total"], reply.body["status"]) == (200, 15, "sent")
    for body in ({"notes": "m"}, {"items": [LINE, LINE]}, {"validUntil": "2999-01-01"},
                 {"notes": None, "status": "accepted"}):  # fmt: skip
        refused = await ana.put(path, body)
        assert (refused.status, refused.body["code"]) == (409, "conflict"), body
    assert (await ana.get(path)).body == reply.body
    same = await ana.put(path, reply.body)
    assert (same.status, same.text) == (200, reply.text)
    assert (await ana.put(path, {"items": []})).faults == {"items": "too_few"}
    assert len(await events(api, "quote")) == 2


async def test_converting(api: RestApi, ana: Person) -> None:
    made_of = {
        "contactId": (await ana.post("/api/contacts", {"name": "C"})).body["id"],
        "companyId": (await ana.post("/api/companies", {"name": "C"})).body["id"],
        "dealId": (await ana.post("/api/deals", {"title": "D", "value": 1})).body["id"],
    }
    path = await in_state(ana, "accepted", discount=1, notes="n", **made_of)
    quote = (await ana.get(path)).body
    reply = await ana.post(f"{path}/convert")
    invoice = reply.body
    assert reply.status == 201
    assert reply.headers["Location"] == f"/api/invoices/{invoice['id']}"
    assert (await ana.get(reply.headers["Location"])).body == invoice
    assert invoice == made_of | {
        "id": invoice["id"], "number": "INV-000001", "status": "pending",
        "items": quote["items"], "subtotal": 20, "discount": 1, "shipping": 0, "total": 19,
        "currency": "BRL", "dueDate": invoice["dueDate"], "overdue": False,
        "quoteId": quote["id"], "notes": "n", "createdAt": invoice["createdAt"],
    }  # fmt: skip
    after = (await ana.get(path)).body
    assert after == quote | {"invoiceId": invoice["id"], "updatedAt": after["updatedAt"]}
    again = await ana.post(f"{path}/convert")
    assert (again.status, again.body["code"]) == (409, "conflict")
    assert again.body["invoiceId"] == invoice["id"]
    assert (await ana.get("/api/invoices")).body["total"] == 1
    listed = (await ana.get(f"/api/invoices?quoteId={quote['id']}")).body["data"]
    assert listed == [invoice]
    names = [
        name for name, _ in await events(api) if name.partition(".")[0] in ("quote", "invoice")
    ]
    assert names == ["quote.created", "quote.updated", "invoice.created"]


async def test_the_due_date_of_a_converted_invoice_can_be_sent(ana: Person) -> None:
    path = await in_state(ana, "accepted")
    wrong = await ana.post(f"{path}/convert", {"dueDate": "soon"})
    assert wrong.faults == {"dueDate": "invalid_date"}
    reply = await ana.post(f"{path}/convert", {"dueDate": "2030-05-06T07:08:09Z", "total": 1})
    assert (reply.status, reply.body["dueDate"]) == (201, "2030-05-06T07:08:09.000Z")
    assert reply.headers["X-Ignored-Fields"] == "total"
    assert reply.body["number"] == "INV-000001"


@pytest.mark.parametrize("state", [s for s in TRANSITIONS if s != "accepted"])
async def test_only_an_accepted_quote_is_converted(ana: Person, state: str) -> None:
    path = await in_state(ana, state)
    reply = await ana.post(f"{path}/convert")
    assert (reply.status, reply.body["code"]) == (409, "invalid_transition")
    assert reply.body["allowed"] == [*TRANSITIONS[state]]
    assert (await ana.get("/api/invoices")).body["total"] == 0


async def test_concurrent_conversions_create_one_invoice(ana: Person) -> None:
    path = await in_state(ana, "accepted")
    replies = await asyncio.gather(*(ana.post(f"{path}/convert") for _ in range(8)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert (await ana.get("/api/invoices")).body["total"] == 1
    # The refused conversions took no number.
    other = await in_state(ana, "accepted")
    assert (await ana.post(f"{other}/convert")).body["number"] == "INV-000002"


async def test_concurrent_transitions_follow_the_table(api: RestApi, ana: Person) -> None:
    for _ in range(4):
        path = await in_state(ana, "sent")
        replies = await asyncio.gather(
            *(ana.post(f"{path}/{verb}") for verb in ("accept", "reject", "cancel") * 2),
            *(ana.put(path, {"status": s}) for s in ("accepted", "expired", "canceled")),
        )
        final = (await ana.get(path)).body
        moved = [r for r in replies if r.status == 200 and r.headers["ETag"] == '"3"']
        assert {r.status for r in replies} <= {200, 409}
        assert {r.body["status"] for r in moved} == {final["status"]}
    names = [name for name, _ in await events(api)]
    assert names.count("quote.updated") == 8


async def set_until(api: RestApi, path: str, until: int, *, day: bool) -> None:
    async def unit(tx: Any) -> None:
        await tx.run(
            "update quotes set valid_until = $2, valid_day = $3, lapses_at = $4 where id = $1",
            path.rpartition("/")[2], until, day, until + (EARLIEST if day else 0),
        )  # fmt: skip

    await api.db.write(unit)


async def test_a_sent_quote_expires_by_the_clock(api: RestApi, ana: Person) -> None:
    path = await in_state(ana, "sent", validUntil="2999-01-01T00:00:00Z")
    draft = await in_state(ana, "draft", validUntil="2020-01-01")
    assert (await ana.get(draft)).body["status"] == "draft"
    await set_until(api, path, api.db.clock.wall() - 1, day=False)
    reply = await ana.get(path)
    assert (reply.body["status"], reply.headers["ETag"]) == ("expired", '"2-expired"')
    for query, total in (("expired", 1), ("sent", 0), ("draft", 1), ("foo", 0)):
        listed = (await ana.get(f"/api/quotes?status={query}")).body
        assert listed["total"] == len(listed["data"]) == total, query
        assert {q["status"] for q in listed["data"]} <= {query}
    for verb in ("accept", "reject", "cancel", "send"):
        refused = await ana.post(f"{path}/{verb}")
        assert (refused.status, refused.body["allowed"]) == (409, [])
    assert (await ana.put(path, {"notes": "x"})).body["code"] == "conflict"
    assert (await ana.put(path, {"status": "expired"})).headers["ETag"] == '"2-expired"'
    before = len(await events(api, "quote.updated"))

    # The expiry duty writes the status and emits one event.
    assert await api.db.write(expire_quotes, 10) == 1
    assert await api.db.write(expire_quotes, 10) == 0
    after = await ana.get(path)
    assert (after.body["status"], after.headers["ETag"]) == ("expired", '"3"')
    assert after.body == reply.body | {"updatedAt": after.body["updatedAt"]}
    assert (await events(api, "quote.updated"))[before:] == [
        ("quote.updated", {
            "id": after.body["id"], "number": after.body["number"], "status": "expired",
            "updatedAt": after.body["updatedAt"],
        }),
    ]  # fmt: skip
    assert (await ana.get(draft)).body["status"] == "draft"


async def test_a_day_ends_in_the_owners_time_zone(api: RestApi, ana: Person) -> None:
    path = await in_state(ana, "sent", validUntil="2999-01-01")
    now = api.db.clock.wall()
    pairs = []
    for offset in (-1, 0):
        await set_until(api, path, now - now % DAY + offset * DAY, day=True)
        states = []
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            await api.move(ana, zone)
            status = (await ana.get(path)).body["status"]
            assert (await ana.get(f"/api/quotes?status={status}")).body["total"] == 1
            states.append(status)
        pairs.append(states)
    # The zones are 25 hours apart, so each day has ended in only one of them.
    assert ["expired", "sent"] in pairs
    # The expiry duty finds a day that is not over, then waits.
    still = -1 if pairs[0] == ["expired", "sent"] else 0
    await set_until(api, path, now - now % DAY + still * DAY, day=True)
    await api.move(ana, "Pacific/Pago_Pago")
    before = len(await events(api))
    assert await api.db.write(expire_quotes, 10) == 1
    assert await api.db.write(expire_quotes, 10) == 0
    assert (await ana.get(path)).body["status"] == "sent"
    assert len(await events(api)) == before
    await api.move(ana, "Pacific/Kiritimati")
    assert (await ana.get(path)).body["status"] == "expired"


async def test_the_expiry_works_in_small_steps(api: RestApi, ana: Person, bia: Person) -> None:
    paths = [await in_state(who, "sent", validUntil="2999-01-01") for who in (ana, bia) * 3]
    for path in paths[:5]:
        await set_until(api, path, 5, day=False)
    assert [await api.db.write(expire_quotes, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert len([d for _, d in await events(api, "quote.updated") if d["status"] == "expired"]) == 5


async def test_concurrent_expiry_and_acceptance(api: RestApi, ana: Person) -> None:
    paths = [await in_state(ana, "sent", validUntil="2999-01-01") for _ in range(6)]
    for path in paths:
        await set_until(api, path, 5, day=False)
    before = len(await events(api, "quote.updated"))
    _, replies = await asyncio.gather(
        asyncio.gather(*(api.db.write(expire_quotes, 10) for _ in range(4))),
        asyncio.gather(*(ana.post(f"{path}/accept") for path in paths)),
    )
    await api.db.write(expire_quotes, 10)
    assert {reply.status for reply in replies} == {409}
    assert len(await events(api, "quote.updated")) == before + 6


async def test_an_expired_quote_cannot_be_sent(ana: Person) -> None:
    path = await in_state(ana, "draft", validUntil="2020-01-01")
    for refused in (await ana.post(f"{path}/send"), await ana.put(path, {"status": "sent"})):
        assert (refused.status, refused.body["code"]) == (409, "conflict")
    assert (await ana.get(path)).headers["ETag"] == '"1"'
    later = await ana.put(path, {"status": "sent", "validUntil": "2999-01-01"})
    assert (later.status, later.body["status"]) == (200, "sent")


async def test_verbs_can_be_repeated_with_a_key(ana: Person) -> None:
    path = await in_state(ana, "accepted")
    replies = [await ana.post(f"{path}/convert", Idempotency_Key="k") for _ in range(3)]
    assert [reply.status for reply in replies] == [201] * 3
    assert len({reply.text for reply in replies}) == 1
    assert replies[1].headers["Idempotent-Replayed"] == "true"
    other = await in_state(ana, "draft")
    assert [(await ana.post(f"{other}/send", Idempotency_Key="k")).status for _ in range(2)] == [
        200, 200,
    ]  # fmt: skip


async def test_the_expiry_follows_a_change_of_the_date(api: RestApi, ana: Person) -> None:
    async def looked_at(path: str) -> tuple[Any, Any]:
        async def unit(tx: Any) -> Any:
            sql = "select valid_until, lapses_at from quotes where id = $1"
            return await tx.one(sql, path.rpartition("/")[2])

        row = await api.db.read(unit)
        return row["valid_until"], row["lapses_at"]

    path = await in_state(ana, "draft")
    assert await looked_at(path) == (None, None)
    for sent, later in (
        ("2999-01-01", EARLIEST), ("2999-01-02", EARLIEST), ("2999-01-02T10:00:00Z", 0),
        ("2999-01-02T10:00:01Z", 0), ("2999-01-03T00:00:00Z", 0), ("2999-01-03", EARLIEST),
    ):  # fmt: skip
        assert (await ana.put(path, {"validUntil": sent})).status == 200
        until, looks = await looked_at(path)
        assert looks == until + later, sent
    await ana.put(path, {"validUntil": None})
    assert await looked_at(path) == (None, None)


async def test_the_duty_runs_until_none_is_left(api: RestApi, ana: Person) -> None:
    [batches] = [batches for batches in BATCHES if batches.unit is expire_quotes]
    count = batches.most + 1
    await asyncio.gather(*(create(ana) for _ in range(count)))

    async def lapse(tx: Any) -> None:
        await tx.run("update quotes set status = 'sent', valid_until = 5, lapses_at = 5")

    await api.db.write(lapse)
    app = api.site.app
    upkeep = Upkeep(api.db, app[METRICS], app[CREDENTIALS], None, Retention())
    await upkeep.run_all(batches)
    announced = [data for _, data in await events(api, "quote.updated")]
    assert len({data["id"] for data in announced}) == len(announced) == count
    assert {data["status"] for data in announced} == {"expired"}

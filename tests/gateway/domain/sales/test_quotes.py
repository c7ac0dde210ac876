"""Tests quotes over HTTP: amounts, states, expiry, and conversion to invoices."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.sales.quotes import EARLIEST, TRANSITIONS, expire_quotes
from gateway.server.app_keys import CREDENTIALS
from gateway.server.config import Retention
from gateway.server.telemetry.metrics import METRICS
from gateway.server.upkeep.web_duties import BATCHES, Upkeep
from tests.support.rest import Person, RestApi

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


@pytest.mark.parametrize("state", TRANSITIONS)
async def test_every_move_by_put_and_by_verb(api: RestApi, ana: Person, state: str) -> None:
    async def told() -> int:
        return len(await events(api, "quote.updated"))

    for target in TRANSITIONS:
        legal = target in TRANSITIONS[state]
        path, verb = await in_state(ana, state), VERBS.get(target)
        before, count = await ana.get(path), await told()
        reply = await ana.put(path, {"status": target})
        if target == state:
            assert (reply.status, reply.headers["ETag"]) == (200, before.headers["ETag"])
        elif legal:
            assert (reply.status, reply.body["status"]) == (200, target)
        else:
            assert (reply.status, reply.body["code"]) == (409, "invalid_transition")
            assert reply.body["allowed"] == [*TRANSITIONS[state]]
            assert (await ana.get(path)).text == before.text
        assert await told() == count + legal
        if verb:
            path = await in_state(ana, state)
            count = await told()
            assert (await ana.post(f"{path}/{verb}")).status == (200 if legal else 409), target
            assert (await ana.get(path)).body["status"] == (target if legal else state)
            assert await told() == count + legal
    if state != "accepted":
        refused = await ana.post(f"{await in_state(ana, state)}/convert")
        assert (refused.status, refused.body["code"]) == (409, "invalid_transition")
        assert refused.body["allowed"] == [*TRANSITIONS[state]]
        assert (await ana.get("/api/invoices")).body["total"] == 0


async def test_concurrent_conversions_create_one_invoice(ana: Person) -> None:
    path = await in_state(ana, "accepted")
    replies = await asyncio.gather(*(ana.post(f"{path}/convert") for _ in range(8)))
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert (await ana.get("/api/invoices")).body["total"] == 1
    # The refused conversions took no number.
    other = await in_state(ana, "accepted")
    assert (await ana.post(f"{other}/convert")).body["number"] == "INV-000002"


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
    for query, total in (("expired", 1), ("sent", 0), ("draft", 1)):
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


async def test_concurrent_expiry_and_acceptance(api: RestApi, ana: Person, bia: Person) -> None:
    for who in (ana, bia) * 3:
        await set_until(api, await in_state(who, "sent", validUntil="2999-01-01"), 5, day=False)
    assert await api.db.write(expire_quotes, 2) == 2
    before = len(await events(api, "quote.updated"))
    paths = [f"/api/quotes/{one['id']}" for one in (await ana.get("/api/quotes")).body["data"]]
    _, replies = await asyncio.gather(
        asyncio.gather(*(api.db.write(expire_quotes, 10) for _ in range(4))),
        asyncio.gather(*(ana.post(f"{path}/accept") for path in paths)),
    )
    await api.db.write(expire_quotes, 10)
    assert {reply.status for reply in replies} == {409}
    assert len(await events(api, "quote.updated")) == before + 4


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

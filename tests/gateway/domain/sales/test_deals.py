"""Tests deals over HTTP: fields, status, lists, figures and pipeline."""

from typing import Any

import pytest

from gateway.domain.sales import deals
from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
UPDATED = {"id", "title", "stage", "probability", "updatedAt"}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/deals", {"title": "Supply", "value": 100} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def contact(who: Person) -> str:
    return str((await who.post("/api/contacts", {"name": "Maria"})).body["id"])


async def company(who: Person) -> str:
    return str((await who.post("/api/companies", {"name": "Acme"})).body["id"])


async def titles(who: Person, query: str) -> list[str]:
    reply = await who.get(f"/api/deals?{query}")
    assert reply.status == 200
    assert reply.body["total"] == len(reply.body["data"])
    return [deal["title"] for deal in reply.body["data"]]


async def stats(who: Person) -> dict[str, Any]:
    reply = await who.get("/api/deals/pipeline-stats")
    assert reply.status == 200
    figures: dict[str, Any] = reply.body
    return figures


@pytest.mark.parametrize("before", ["open", "won", "lost"])
@pytest.mark.parametrize("after", ["open", "won", "lost"])
async def test_every_change_of_status_is_allowed(
    api: RestApi, ana: Person, before: str, after: str
) -> None:
    record = await create(ana, probability=40)
    path = f"/api/deals/{record['id']}"
    first = (await ana.put(path, {"status": before})).body
    second = await ana.put(path, {"status": after})
    assert second.status == 200
    assert (second.body["status"], second.body["probability"]) == (after, 40)
    assert ("closedAt" in second.body) is (after != "open")
    if after != "open":
        expected = first["closedAt"] if after == before else second.body["updatedAt"]
        assert second.body["closedAt"] == expected
    # A status in the request always emits an event, as the contract says.
    events = [data for name, data in await api.events() if name == "deal.updated"]
    assert len(events) == 2
    assert events[1] == {name: second.body.get(name) for name in UPDATED}
    assert isinstance(events[1]["updatedAt"], str)


@pytest.mark.parametrize("status", [None, "", "Won", "closed", 1, ["won"]])
async def test_an_invalid_status(api: RestApi, ana: Person, status: Any) -> None:
    record = await create(ana)
    reply = await ana.put(f"/api/deals/{record['id']}", {"status": status})
    assert (reply.status, set(reply.faults)) == (400, {"status"})
    assert [name for name, _ in await api.events()] == ["deal.created"]


async def test_the_reason_of_a_loss_is_cleared_with_it(ana: Person) -> None:
    path = f"/api/deals/{(await create(ana))['id']}"
    lost = (await ana.put(path, {"status": "lost", "lostReason": "Price"})).body
    assert lost["lostReason"] == "Price"
    assert (await ana.put(path, {"title": "Y"})).body["lostReason"] == "Price"
    reopened = (await ana.put(path, {"status": "open"})).body
    assert not {"lostReason", "closedAt"} & set(reopened)


async def test_only_a_lost_deal_has_a_reason(ana: Person, bia: Person) -> None:
    path = f"/api/deals/{(await create(ana))['id']}"
    for body in (
        {"lostReason": "Price"}, {"status": "won", "lostReason": "Price"},
        {"status": "open", "lostReason": "Price"},
    ):  # fmt: skip
        reply = await ana.put(path, body)
        assert (reply.status, reply.faults) == (400, {"lostReason": "not_lost"}), body
    assert (await bia.put(path, {"lostReason": "Price"})).status == 403
    assert (await ana.put(f"/api/deals/{NOWHERE}", {"lostReason": "x"})).status == 404
    both = await ana.put(path, {"lostReason": "x", "title": ""})
    assert both.faults == {"title": "too_short", "lostReason": "not_lost"}
    assert (await ana.put(path, {"lostReason": None})).status == 200
    lost = (await ana.put(path, {"status": "lost"})).body
    assert (await ana.put(path, {"lostReason": "Price"})).body["lostReason"] == "Price"
    # The client sends the whole record back with another status: the reason is cleared.
    again = lost | {"lostReason": "Price", "status": "won"}
    won = await ana.put(path, again)
    assert (won.status, won.body["status"]) == (200, "won")
    assert "lostReason" not in won.body
    assert (await ana.put(path, {"lostReason": "Price"})).faults == {"lostReason": "not_lost"}


async def test_filters(ana: Person, bia: Person) -> None:
    acme, maria, rui = await company(ana), await contact(ana), await contact(ana)
    a = await create(ana, title="a", value=10, stage="lead", companyId=acme)
    b = await create(ana, title="b", value=20.5, stage="proposal", contactIds=[maria, rui])
    await create(ana, title="c", value=30, contactIds=[rui])
    await create(bia, title="theirs", value=20, stage="lead")
    await ana.put(f"/api/deals/{a['id']}", {"status": "won"})
    assert await titles(ana, "") == ["c", "b", "a"]
    for query, expected in {
        "status=open": "cb", "status=won": "a", "status=lost": "", "status=foo": "", "status=": "",
        "stage=lead": "a", "stage=LEAD": "", "stage=nope": "",
        f"companyId={acme}": "a", f"companyId={acme.upper()}": "a", f"companyId={NOWHERE}": "",
        f"contactId={rui}": "cb", f"contactId={maria}": "b", "contactId=x": "",
        "minValue=20.5": "cb", "minValue=20.51": "c", "maxValue=20.5": "ba", "maxValue=0": "",
        "minValue=10&maxValue=20.5&status=open": "b", "minValue=abc": "", "maxValue=NaN": "",
        f"ids={a['id']},{b['id']}": "ba", f"contactId={rui}&stage=proposal": "b",
        "status=%00": "", "stage=%ED%A0%80": "", "search=zzz": "cba",
    }.items():  # fmt: skip
        assert await titles(ana, query) == list(expected), query


async def test_sorting(ana: Person) -> None:
    await create(ana, title="a", value=30, expectedCloseDate="2026-12-01")
    await create(ana, title="b", value=10)
    await create(ana, title="c", value=20, expectedCloseDate="2026-11-01")
    for sort, expected in {
        "value": "bca", "-value": "acb", "expectedCloseDate": "cab", "-expectedCloseDate": "bac",
        "createdAt": "abc", "-updatedAt": "cba", "expectedCloseDate,-value": "cab",
    }.items():  # fmt: skip
        assert await titles(ana, f"sort={sort}") == list(expected), sort
    assert (await ana.get("/api/deals?sort=title")).status == 400


async def test_figures_without_deals(ana: Person) -> None:
    assert await stats(ana) == {
        "totalDeals": 0, "totalValue": 0, "byStage": {}, "wonDeals": 0, "lostDeals": 0,
        "conversionRate": 0,
    }  # fmt: skip


async def test_figures(ana: Person, bia: Person) -> None:
    await create(bia, value=999, stage="lead")
    for value, stage, status in (
        (10.10, "lead", "open"), (20.20, "lead", "won"), (0, "closing", "lost"),
        (5, None, "won"), (1.01, "Zebra", "lost"), (2, "custom", "lost"), (3, "(none)", "open"),
    ):  # fmt: skip
        deal = await create(ana, value=value, stage=stage)
        if status != "open":
            await ana.put(f"/api/deals/{deal['id']}", {"status": status})
    figures = await stats(ana)
    assert figures == {
        "totalDeals": 7,
        "totalValue": 41.31,
        "byStage": {
            "lead": {"count": 2, "value": 30.3},
            "closing": {"count": 1, "value": 0},
            "Zebra": {"count": 1, "value": 1.01},
            "custom": {"count": 1, "value": 2},
            "(none)": {"count": 2, "value": 8},
        },
        "wonDeals": 2,
        "lostDeals": 3,
        "conversionRate": 40,
    }
    # In the order of the pipeline, then by name, and deals without a stage last.
    assert list(figures["byStage"]) == ["lead", "closing", "Zebra", "custom", "(none)"]


@pytest.mark.parametrize(
    ("won", "lost", "rate"), [(1, 2, 33.33), (2, 1, 66.67), (1, 0, 100), (0, 1, 0), (1, 7, 12.5)]
)
async def test_the_conversion_rate_is_percent(
    ana: Person, won: int, lost: int, rate: float
) -> None:
    for status in ["won"] * won + ["lost"] * lost + ["open"]:
        path = f"/api/deals/{(await create(ana))['id']}"
        await ana.put(path, {"status": status})
    figures = await stats(ana)
    assert (figures["wonDeals"], figures["lostDeals"]) == (won, lost)
    assert figures["conversionRate"] == rate


async def test_a_very_large_value_is_exact_to_the_centavo(ana: Person) -> None:
    for _ in range(3):
        await create(ana, value=999_999_999_999.99)
    assert (await stats(ana))["totalValue"] == 2_999_999_999_999.97


async def test_the_pipeline_is_a_setting(ana: Person, bia: Person) -> None:
    path = "/api/settings/pipeline"
    default = {
        "stages": ["lead", "qualified", "proposal", "negotiation", "closing"], "strict": False,
    }  # fmt: skip
    first = await ana.get(path)
    assert (first.body, first.headers["ETag"]) == (default, '"0"')
    assert (await ana.get(path, If_None_Match='"0"')).status == 304
    assert (await ana.put(path, {})).headers["ETag"] == '"0"'
    changed = await ana.put(path, {"stages": ["new", "old", "new"], "color": 1}, If_Match='"0"')
    assert (changed.status, changed.body) == (200, {"stages": ["new", "old"], "strict": False})
    assert changed.headers["ETag"] == '"1"'
    assert changed.headers["X-Ignored-Fields"] == "color"
    assert (await ana.get(path)).body == changed.body
    assert (await bia.get(path)).body == default
    assert (await ana.put(path, {"strict": True}, If_Match='"0"')).status == 412
    assert (await ana.put(path, {"stages": None})).body == default
    for stage in ("old", "new", "lead", "alpha"):
        await create(ana, stage=stage)
    await ana.put(path, {"stages": ["new", "old"]})
    assert list((await stats(ana))["byStage"]) == ["new", "old", "alpha", "lead"]


async def test_an_invalid_pipeline(api: RestApi, ana: Person) -> None:
    path = "/api/settings/pipeline"
    for body, faults in (
        ({"stages": "lead"}, {"stages": "wrong_type"}),
        ({"stages": ["a", "", 5], "strict": 1},
         {"stages[1]": "too_short", "stages[2]": "wrong_type", "strict": "wrong_type"}),
        ({"stages": [f"s{i}" for i in range(51)]}, {"stages": "too_many"}),
    ):  # fmt: skip
        reply = await ana.put(path, body)
        assert (reply.status, reply.faults) == (400, faults)
    assert (await ana.call("PUT", path, data=b"[")).body["code"] == "invalid_json"
    reader = await api.key_of(ana.user_id, ["read"])
    assert (await reader.put(path, {})).status == 403
    assert (await api.nobody.put(path, {})).status == 401
    assert (await ana.get(path)).headers["ETag"] == '"0"'
    assert await api.events() == []


async def test_a_strict_pipeline_limits_deals_to_its_stages(ana: Person, bia: Person) -> None:
    path = f"/api/deals/{(await create(ana, stage='elsewhere'))['id']}"
    await ana.put("/api/settings/pipeline", {"strict": True})
    created = await ana.post("/api/deals", {"title": "", "value": 1, "stage": "new"})
    assert created.faults == {"title": "too_short", "stage": "not_allowed"}
    assert (await ana.put(path, {"stage": "new"})).faults == {"stage": "not_allowed"}
    assert (await ana.put(f"/api/deals/{NOWHERE}", {"stage": "new"})).status == 404
    # A deal can keep its stage, and a new one can have no stage.
    assert (await ana.put(path, {"title": "Y"})).body["stage"] == "elsewhere"
    assert (await ana.put(path, {"stage": "lead"})).status == 200
    await create(ana)
    await create(bia, stage="new")


async def test_a_strict_pipeline_checks_changes(ana: Person, bia: Person) -> None:
    deal = await create(ana, stage="elsewhere")
    path = f"/api/deals/{deal['id']}"
    await ana.put("/api/settings/pipeline", {"strict": True})
    # A client can send the whole record back with another field changed.
    reply = await ana.put(path, deal | {"title": "Y"})
    assert (reply.status, reply.body["title"], reply.body["stage"]) == (200, "Y", "elsewhere")
    assert (await bia.put(path, {"stage": "new"})).status == 403
    assert (await ana.put(path, {"stage": "new"})).faults == {"stage": "not_allowed"}
    assert (await ana.put(path, {"stage": "lead"})).status == 200
    assert (await ana.put(path, {"stage": "elsewhere"})).faults == {"stage": "not_allowed"}
    assert "stage" not in (await ana.put(path, {"stage": None})).body


async def test_a_pipeline_without_stages_is_not_strict(ana: Person) -> None:
    path = "/api/settings/pipeline"
    for body, field in (
        ({"stages": [], "strict": True}, "stages"), ({"strict": True}, "strict"),
    ):  # fmt: skip
        await ana.put(path, {"stages": [], "strict": False})
        reply = await ana.put(path, body)
        assert (reply.status, reply.faults) == (400, {field: "no_stages"})
    assert (await ana.put(path, {"stages": ["a"], "strict": True})).status == 200
    assert (await ana.put(path, {"stages": []})).faults == {"stages": "no_stages"}
    assert (await ana.put(path, {"stages": [], "strict": False})).body == {
        "stages": [], "strict": False,
    }  # fmt: skip


async def test_the_stages_of_an_owner_are_bounded(
    ana: Person, bia: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures have a row for each stage, so their size is bounded where stages are written."""
    monkeypatch.setattr(deals, "MOST_STAGES", 2)
    first = await create(ana, stage="one")
    await create(ana, stage="two")
    await create(ana, stage="two")
    await create(ana)
    third = {"title": "Supply", "value": 1, "stage": "three"}
    for reply in (
        await ana.post("/api/deals", third),
        await ana.put(f"/api/deals/{first['id']}", {"stage": "three"}),
    ):
        assert (reply.status, reply.faults) == (400, {"stage": "too_many"})
    await create(bia, stage="three")
    assert (await ana.put(f"/api/deals/{first['id']}", {"stage": "two"})).status == 200
    # The stage that no deal is in any more makes room.
    await create(ana, stage="three")
    assert set((await stats(ana))["byStage"]) == {"two", "three", "(none)"}

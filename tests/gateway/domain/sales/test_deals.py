"""Tests deals over HTTP: fields, status, lists, figures and pipeline."""

from typing import Any

import pytest

from gateway.domain.sales import deals
from tests.support.rest import Person, RestApi


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/deals", {"title": "Supply", "value": 100} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def stats(who: Person) -> dict[str, Any]:
    reply = await who.get("/api/deals/pipeline-stats")
    assert reply.status == 200
    figures: dict[str, Any] = reply.body
    return figures


async def test_a_very_large_value_is_exact_to_the_centavo(ana: Person) -> None:
    for _ in range(3):
        await create(ana, value=999_999_999_999.99)
    assert (await stats(ana))["totalValue"] == 2_999_999_999_999.97


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
    assert (await ana.put(path, {})).headers["ETag"] == '"0"'
    assert await api.events() == []


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

"""What each write stores with its event for the filters of webhooks, and that no body has it."""

from __future__ import annotations

import json
from typing import Any

from gateway.domain.catalogue import EVENTS
from gateway.domain.imports.importing import Importing
from outbox.database.transaction import Database, Tx
from tests.support.rest import Person, RestApi

Stored = tuple[str, dict[str, tuple[Any, bool]]]


async def stored(db: Database, after: int = 0) -> list[Stored]:
    """Return the name of each event, with its fields of the record: value, and whether changed."""

    async def unit(tx: Tx) -> list[Stored]:
        rows = await tx.all("select name, body, record_fields from events order by pos")
        for row in rows:
            # The contract decides what a body has.
            assert tuple(json.loads(row["body"])["data"]) == EVENTS[row["name"]]
        return [
            (row["name"], {name: (value, changed) for name, value, changed in fields})
            for row in rows[after:]
            for fields in [json.loads(row["record_fields"] or "[]")]
        ]

    return await db.read(unit)


async def test_batches_and_imports(api: RestApi, ana: Person) -> None:
    items = [{"title": "a", "value": 1, "stage": "lead"}, {"title": "b", "value": 2}]
    assert (await ana.post("/api/deals/batch", {"items": items})).status == 207
    text = "title,value,stage\nc,3,proposal\n"
    sent = await ana.call("POST", "/api/import/deals", data=text.encode(), Content_Type="text/csv")
    assert sent.status == 202
    await Importing(api.db).run_once()
    assert await stored(api.db) == [
        ("deal.created", {"stage": ("lead", True), "status": ("open", True)}),
        ("deal.created", {"stage": (None, False), "status": ("open", True)}),
        ("deal.created", {"stage": ("proposal", True), "status": ("open", True)}),
    ]

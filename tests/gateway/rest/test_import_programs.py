"""Files of other programs, written after their public formats with invented people.

`programs/expected.json` has the table: the recognised headings, the notices, the warnings and the
records of each file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.rest.test_imports import counts, imported
from tests.support.rest import Person, RestApi

FOLDER = Path(__file__).with_name("programs")
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())
GIVEN = ("id", "createdAt", "updatedAt", "currency", "source", "phoneE164")


def kind_of(file: str) -> str:
    return "products" if "products" in file else "contacts"


async def table_of(who: Person, body: dict[str, Any]) -> dict[str, Any]:
    """Return what an import came to, as the table has it."""
    companies = (await who.get("/api/companies?limit=100")).body["data"]
    names = {one["id"]: one["name"] for one in companies}
    rows = (await who.get(f"/api/{body['type']}?sort=name&limit=100")).body["data"]
    for row in rows:
        if "companyId" in row:
            row["companyId"] = names[row["companyId"]]
    return {
        "encoding": body["encoding"], "warnings": body["warnings"], "columns": body["columns"],
        "notices": body["notices"],
        "records": [{k: v for k, v in row.items() if k not in GIVEN} for row in rows],
    }  # fmt: skip


@pytest.mark.parametrize("file", EXPECTED)
async def test_a_file_is_recognised_without_a_click(api: RestApi, ana: Person, file: str) -> None:
    expected, data = EXPECTED[file], (FOLDER / file).read_bytes()
    body = await imported(api, ana, kind_of(file), data)
    assert await table_of(ana, body) == expected, body["faults"]
    total = len(expected["records"])
    assert counts(body) == (total, total, 0, 0, 0)
    # What has an e-mail or a SKU is found again, and does not change.
    body = await imported(api, ana, kind_of(file), data)
    assert (body["updated"], body["faulty"]) == (0, 0), body["faults"]

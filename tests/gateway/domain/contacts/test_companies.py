"""Tests the rules of companies over HTTP: the CNPJ and the search."""

from typing import Any

import pytest

from tests.support.rest import Person


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/companies", {"name": "Acme"} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


@pytest.mark.parametrize("cnpj", ["12ABC34501DE-35", "00000000000191", "12.abc.345/01de-35"])
async def test_a_valid_cnpj_is_returned_unchanged(ana: Person, cnpj: str) -> None:
    record = await create(ana, cnpj=cnpj)
    assert record["cnpj"] == cnpj
    page = await ana.get(f"/api/companies?cnpj={cnpj}")
    assert [r["id"] for r in page.body["data"]] == [record["id"]]

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


@pytest.mark.parametrize("cnpj", ["11222333000182", "123", "", "00000000000000", "١١٢٢٢٣٣٣٠٠٠١٨١"])
async def test_an_invalid_cnpj_has_its_own_code(ana: Person, cnpj: str) -> None:
    reply = await ana.post("/api/companies", {"name": "X", "cnpj": cnpj})
    assert (reply.status, reply.body["code"]) == (400, "invalid_cnpj")
    assert reply.faults == {"cnpj": "invalid_cnpj"}
    both = await ana.post("/api/companies", {"cnpj": cnpj})
    assert both.body["code"] == "validation_error"
    assert both.faults == {"cnpj": "invalid_cnpj", "name": "required"}


async def test_search_matches_name_and_email(ana: Person) -> None:
    await create(ana, name="Padaria Pão", industry="zzz")
    await create(ana, name="Other", email="pao@example.com")
    page = await ana.get("/api/companies?search=P%C3%83O")
    assert [r["name"] for r in page.body["data"]] == ["Other", "Padaria Pão"]
    assert (await ana.get("/api/companies?search=zzz")).body["total"] == 0

"""Tests the special fields of companies over HTTP; test_contacts tests the common behaviour."""

from typing import Any

import pytest

from tests.support.rest import Person, RestApi

NOWHERE = "0" * 24
FULL: dict[str, Any] = {
    "name": "Acme Ltda",
    "cnpj": "11.222.333/0001-81",
    "website": "https://acme.example/sobre",
    "industry": "Retail",
    "size": "11-50",
    "email": "hello@acme.example",
    "phone": "(11) 3333-4444",
    "notes": "",
}


async def create(who: Person, **body: Any) -> dict[str, Any]:
    reply = await who.post("/api/companies", {"name": "Acme"} | body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_a_created_company_is_returned_unchanged(ana: Person) -> None:
    record = await create(ana, **FULL)
    assert record == FULL | {
        "id": record["id"], "createdAt": record["createdAt"], "phoneE164": "+551133334444",
    }  # fmt: skip
    path = f"/api/companies/{record['id']}"
    assert (await ana.get(path)).body == record
    changed = await ana.put(path, {"size": "1000+", "cnpj": None})
    assert changed.status == 200
    assert changed.body["size"] == "1000+"
    assert "cnpj" not in changed.body
    assert (await ana.delete(path)).body["id"] == record["id"]
    assert (await ana.get(path)).status == 404


@pytest.mark.parametrize("cnpj", ["12ABC34501DE-35", "00000000000191", "12.abc.345/01de-35"])
async def test_a_valid_cnpj_is_returned_unchanged(ana: Person, cnpj: str) -> None:
    record = await create(ana, cnpj=cnpj)
    assert record["cnpj"] == cnpj
    found = await ana.get(f"/api/companies?cnpj={cnpj}")
    assert [r["id"] for r in found.body["data"]] == [record["id"]]


@pytest.mark.parametrize("cnpj", ["11222333000182", "123", "", "00000000000000", "١١٢٢٢٣٣٣٠٠٠١٨١"])
async def test_an_invalid_cnpj_has_its_own_code(ana: Person, cnpj: str) -> None:
    reply = await ana.post("/api/companies", {"name": "X", "cnpj": cnpj})
    assert (reply.status, reply.body["code"]) == (400, "invalid_cnpj")
    assert reply.faults == {"cnpj": "invalid_cnpj"}
    both = await ana.post("/api/companies", {"cnpj": cnpj})
    assert both.body["code"] == "validation_error"
    assert both.faults == {"cnpj": "invalid_cnpj", "name": "required"}


@pytest.mark.parametrize("size", ["1-10", "11-50", "51-200", "201-1000", "1000+"])
async def test_the_sizes(ana: Person, size: str) -> None:
    assert (await create(ana, size=size))["size"] == size


async def test_other_invalid_fields(ana: Person) -> None:
    reply = await ana.post(
        "/api/companies", {"name": "X", "size": "2-3", "website": "ftp://x.y", "email": "x"}
    )
    assert reply.status == 400
    assert reply.faults == {
        "size": "not_allowed", "website": "invalid_website", "email": "invalid_email",
    }  # fmt: skip


async def test_search_matches_name_and_email(ana: Person) -> None:
    await create(ana, name="Padaria Pão", industry="zzz")
    await create(ana, name="Other", email="pao@example.com")
    found = await ana.get("/api/companies?search=P%C3%83O")
    assert [r["name"] for r in found.body["data"]] == ["Other", "Padaria Pão"]
    assert (await ana.get("/api/companies?search=zzz")).body["total"] == 0


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_three_people(api: RestApi, ana: Person, bia: Person, method: str) -> None:
    path = f"/api/companies/{(await create(ana))['id']}"
    body = {"name": "X"} if method in ("PUT", "PATCH") else None
    assert (await api.nobody.call(method, path, body)).status == 401
    assert (await ana.call(method, f"/api/companies/{NOWHERE}", body)).status == 404
    assert (await bia.call(method, path, body)).status == 403
    assert (await ana.call(method, path, body)).status == 200


async def test_contacts_stay_when_their_company_is_deleted(ana: Person, bia: Person) -> None:
    company = await create(ana)
    contact = (await ana.post("/api/contacts", {"name": "M", "companyId": company["id"]})).body
    path = f"/api/contacts/{contact['id']}"
    assert contact["companyId"] == company["id"]
    assert (await ana.get(f"/api/contacts?companyId={company['id']}")).body["total"] == 1
    foreign = await bia.post("/api/contacts", {"name": "M", "companyId": company["id"]})
    missing = await bia.post("/api/contacts", {"name": "M", "companyId": NOWHERE})
    assert foreign.status == missing.status == 400
    assert foreign.body["code"] == "invalid_reference"
    assert foreign.body | {"requestId": ""} == missing.body | {"requestId": ""}
    assert (await ana.delete(f"/api/companies/{company['id']}")).status == 200
    after = await ana.get(path)
    assert after.headers["ETag"] == '"2"'
    assert after.body == {k: v for k, v in contact.items() if k != "companyId"} | {
        "updatedAt": after.body["updatedAt"]
    }

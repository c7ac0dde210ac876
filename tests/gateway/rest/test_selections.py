"""Tests `fields`, `include` and the header with ignored parameters."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import CIMultiDict

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales.deals import DEALS
from gateway.records import included, store
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.support.counted import Counted
from tests.support.document import answer_faults
from tests.support.rest import Person, RestApi
from tests.support.site import serving

LONG = "é" * 40_000


async def made(who: Person, plural: str, **body: Any) -> str:
    reply = await who.post(f"/api/{plural}", body)
    assert reply.status == 201, reply.text
    record_id: str = reply.body["id"]
    return record_id


async def test_a_part_has_the_tag_of_the_whole_record(ana: Person) -> None:
    contact = await made(ana, "contacts", name="Bruno")
    path = f"/api/contacts/{contact}?fields=name"
    tag = (await ana.get(path)).headers["ETag"]
    assert tag == (await ana.get(f"/api/contacts/{contact}")).headers["ETag"]
    assert (await ana.get(path, If_None_Match=tag)).status == 304
    # Also when only members change that it lacks.
    assert (
        await ana.put(f"/api/contacts/{contact}", {"phone": "11 91234-5678"}, If_Match=tag)
    ).status == 200
    assert (await ana.get(path, If_None_Match=tag)).status == 200


async def test_a_record_with_others_beside_it_has_its_own_tag_and_is_sent_each_time(
    ana: Person,
) -> None:
    company = await made(ana, "companies", name="Lima")
    path = f"/api/contacts/{await made(ana, 'contacts', name='Bruno', companyId=company)}"
    whole = await ana.get(f"{path}?include=company")
    tag = whole.headers["ETag"]
    assert tag == (await ana.get(path)).headers["ETag"]
    assert (await ana.put(f"/api/companies/{company}", {"name": "Lima e Filhos"})).status == 200
    again = await ana.get(f"{path}?include=company", If_None_Match=tag)
    assert (again.status, again.headers["ETag"]) == (200, tag)
    [beside] = again.body["included"]["companies"]
    assert beside["name"] == "Lima e Filhos"
    assert (await ana.put(path, {"name": "Bia"}, If_Match=tag)).status == 200
    assert (await ana.put(path, {"name": "Caio"}, If_Match=tag)).status == 412
    assert "ETag" not in (await ana.get("/api/contacts?include=company")).headers


@pytest.mark.parametrize("kind", ["record", "settings"])
async def test_tags_in_several_lines_are_one_list(api: RestApi, ana: Person, kind: str) -> None:
    path, body = "/api/settings/pipeline", dict[str, Any](strict=False)
    if kind == "record":
        path, body = f"/api/contacts/{await made(ana, 'contacts', name='Bruno')}", {"name": "Bia"}
    tag = (await ana.get(path)).headers["ETag"]

    async def status(method: str, name: str, *tags: str) -> int:
        lines = CIMultiDict([*ana.headers.items(), *((name, one) for one in tags)])
        sent = None if method in ("GET", "DELETE") else body
        async with api.site.http.request(method, path, json=sent, headers=lines) as answer:
            return answer.status

    assert await status("GET", "If-None-Match", '"77"', '"78"') == 200
    assert await status("GET", "If-None-Match", '"77"', tag) == 304
    assert await status("PUT", "If-Match", '"77"', '"78"') == 412
    assert await status("PUT", "If-Match", '"77"', tag) == 200
    if kind == "record":
        tag = (await ana.get(path)).headers["ETag"]
        assert await status("DELETE", "If-Match", '"77"', '"78"') == 412
        assert await status("DELETE", "If-Match", '"77"', tag) == 200


async def test_without_long_members_a_page_of_long_records_is_read_at_once(
    ana: Person, api: RestApi
) -> None:
    for number in range(3):
        await made(ana, "deals", title=f"D{number}", value=1, lostReason=None)
        await made(ana, "quotes", notes=LONG, items=[
            {"description": "Tea", "quantity": 1, "unitPrice": 1}])  # fmt: skip
    whole = await ana.get("/api/quotes")
    assert "Content-Length" not in whole.headers
    part = await ana.get("/api/quotes?fields=number")
    assert "Content-Length" in part.headers
    assert [list(one) for one in part.body["data"]] == [["id", "number"]] * 3
    notes = await ana.get("/api/quotes?fields=notes")
    assert [one["notes"] for one in notes.body["data"]] == [LONG] * 3


async def people(who: Person) -> dict[str, str]:
    """Create a company, two contacts and a deal that refers to them; return their ids."""
    company = await made(who, "companies", name="Acme")
    first = await made(who, "contacts", name="Bruno", companyId=company)
    second = await made(who, "contacts", name="Carla")
    deal = await made(
        who, "deals", title="Tea", value=1, companyId=company, contactIds=[second, first]
    )
    return {"company": company, "first": first, "second": second, "deal": deal}


async def test_what_records_refer_to_is_included_once(ana: Person) -> None:
    ids = await people(ana)
    await made(ana, "deals", title="Coffee", value=1, companyId=ids["company"])
    whole = {
        plural: (await ana.get(f"/api/{plural}/{ids[name]}")).body
        for plural, name in (("companies", "company"), ("contacts", "second"))
    }
    listed = await ana.get("/api/deals?include=contacts, company,company&limit=5")
    assert list(listed.body) == ["data", "total", "page", "limit", "included"]
    assert [one["title"] for one in listed.body["data"]] == ["Coffee", "Tea"]
    assert listed.body["data"] == (await ana.get("/api/deals")).body["data"]
    assert list(listed.body["included"]) == ["contacts", "companies"]
    assert listed.body["included"]["companies"] == [whole["companies"]]
    assert [one["id"] for one in listed.body["included"]["contacts"]] == [
        ids["second"], ids["first"],
    ]  # fmt: skip
    assert listed.body["included"]["contacts"][0] == whole["contacts"]
    assert answer_faults("GET", "/api/deals", 200, listed.body) == []
    alone = await ana.get(f"/api/deals/{ids['deal']}?include=company&fields=title")
    assert alone.body == {
        "id": ids["deal"], "title": "Tea", "included": {"companies": [whole["companies"]]},
    }  # fmt: skip
    full = await ana.get(f"/api/deals/{ids['deal']}?include=contacts")
    assert answer_faults("GET", "/api/deals/{id}", 200, full.body) == []
    # Searches and filters too.
    for query in ("search=tea", "status=open&sort=-value", "ids=" + ids["deal"]):
        found = (await ana.get(f"/api/deals?{query}&include=company")).body
        assert found["included"]["companies"] == [whole["companies"]]


async def test_deleted_records_and_those_of_others_are_not_included(
    ana: Person, bia: Person, api: RestApi
) -> None:
    ids, hers = await people(ana), await people(bia)

    async def stray(tx: Tx) -> None:
        await tx.run("update deals set company_id = $2 where id = $1", ids["deal"], hers["company"])

    await api.db.write(stray)
    await ana.delete(f"/api/contacts/{ids['first']}")
    told = (await ana.get(f"/api/deals/{ids['deal']}?include=company,contacts")).body["included"]
    assert told["companies"] == []
    assert [one["id"] for one in told["contacts"]] == [ids["second"]]
    refused = await bia.get(f"/api/deals/{ids['deal']}?include=company")
    assert refused.status == 403
    assert (await ana.get("/api/deals/" + "0" * 24 + "?include=company")).status == 404


async def deals(tx: Tx, owner: str, many: int, contacts: int, note: str) -> None:
    """Create deals with a company and several contacts each, of which no two share one."""
    for number in range(many):
        company = await store.insert(tx, COMPANIES, owner, {"name": f"C{number}", "notes": note})
        people = [
            (
                await store.insert(
                    tx, CONTACTS, owner, {"name": f"P{number}.{n}", "source": "other", "tags": "[]"}
                )
            )[0]
            for n in range(contacts)
        ]
        text = "[" + ",".join(f'"{one}"' for one in people) + "]"
        values = {"title": f"D{number}", "value": 1, "status": "open", "currency": "BRL",
                  "company_id": company[0], "contact_ids": text}  # fmt: skip
        await store.insert(tx, DEALS, owner, values)


@pytest.mark.parametrize("many", [2, 100])
async def test_each_included_resource_is_one_statement(db: Database, many: int) -> None:
    counted = Counted(db, of_requests=True)
    async with serving(counted, Config(limits=Limits(read_per_second=0))) as site:
        ana = await RestApi(site).person()
        await db.write(deals, ana.user_id, many, 5, "")
        await ana.get("/api/deals?limit=100")
        told = []
        for include in ("", "&include=company", "&include=company,contacts"):
            counted.reset()
            reply = await ana.get(f"/api/deals?limit=100&fields=title{include}")
            assert reply.status == 200
            told.append(len(counted.statements))
        assert [one - told[0] for one in told] == [0, 1, 2]
        assert len(reply.body["included"]["contacts"]) == 5 * many
        assert "truncated" not in reply.body["included"]


async def test_included_records_are_bounded_and_the_response_says_so(
    ana: Person, db: Database
) -> None:
    await db.write(deals, ana.user_id, 100, 6, "")
    told = (await ana.get("/api/deals?limit=100&include=contacts")).body
    assert len(told["included"]["contacts"]) == included.MOST
    assert told["included"]["truncated"] is True
    first = [one for deal in told["data"] for one in deal["contactIds"]][: included.MOST]
    assert [one["id"] for one in told["included"]["contacts"]] == first


async def test_each_included_name_costs_a_read(still: Database) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=3))) as site:
        ana = await RestApi(site).person()
        deal = await made(ana, "deals", title="Tea", value=1)
        assert (await ana.get(f"/api/deals/{deal}?include=company,contacts")).status == 200
        refused = await ana.get(f"/api/deals/{deal}")
        assert (refused.status, refused.body["code"]) == (429, "rate_limited")

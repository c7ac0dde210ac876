"""What the forms and pages of records do beside their walk: names, days, races, and what points."""

from __future__ import annotations

import re
from typing import Any

import pytest

from outbox.database.transaction import Database
from tests.gateway.console.records.test_every_resource import fields_of, owner_of
from tests.support.console import CONFIG, Guest, guest
from tests.support.counted import Counted
from tests.support.crm_rows import add_contacts
from tests.support.rest import Person, RestApi
from tests.support.site import Site, serving


@pytest.fixture
async def api(console: Site, maria: Guest) -> Person:
    return await RestApi(console).key_of(await owner_of(console.db))


def changed(html: str, **typed: str) -> list[tuple[str, str]]:
    """Return what the form of a page sends with some inputs changed."""
    sent = [(name, value) for name, value in fields_of(html) if name not in typed]
    return [*sent, *typed.items()]


async def test_a_name_that_is_clear_is_taken_and_another_is_asked_about(
    maria: Guest, api: Person
) -> None:
    told = {"email": "acai@b.example", "cnpj": "11.222.333/0001-81", "phone": "(11) 98888-7777"}
    acme = (await api.post("/api/companies", {"name": "Açaí Ltda", **told})).body["id"]
    twins = [
        (await api.post("/api/companies", {"name": "Café Sul", "email": email})).body["id"]
        for email in ("one@b.example", "two@b.example")
    ]
    path = "/console/contacts"
    # The beginning of its words is enough when nobody else has them.
    for text in (
        "acai ltda", "açaí", "ltda aça", acme, acme.upper(), f"Açaí Ltda · {acme}",
        "ACAI@b.example", "11222333000181", "+55 11 98888 7777", "98888-7777",
    ):  # fmt: skip
        page = await maria.submit(path, at=f"{path}/new", name="Ana", companyId=text)
        assert f'<a href="/console/companies/{acme}"><bdi>Açaí Ltda</bdi></a>' in page.html
    asked = await maria.submit(path, at=f"{path}/new", name="Bia", companyId="café sul")
    assert asked.status == 400
    assert 'value="Bia"' in asked.html
    assert all(f'name="companyId.pick" value="{one}"' in asked.html for one in twins)
    assert "two@b.example" in asked.html
    sent = changed(asked.html, **{"companyId.pick": twins[1]})
    page = await maria.post(path, sent)
    assert f'href="/console/companies/{twins[1]}"' in page.html
    asked = await maria.submit(path, at=f"{path}/new", name="Bia", companyId="çaí")
    assert f'name="companyId.pick" value="{acme}" checked' in asked.html
    for nobody in ("Nobody", "%", "\0", "x" * 300):
        page = await maria.submit(path, at=f"{path}/new", name="Bia", companyId=nobody)
        assert page.status == 400
        assert 'id="companyId-fault"' in page.html
    offered = await maria.get("/console/companies/suggest?companyId=caf%C3%A9")
    values = re.findall('<option value="([^"]*)"', offered.html)
    assert sorted(values) == sorted(f"Café Sul · {one}" for one in twins)


async def test_names_of_others_are_never_offered(maria: Guest, rui: Guest, api: Person) -> None:
    await api.post("/api/companies", {"name": "Segredo Ltda"})
    offered = await rui.get("/console/companies/suggest?q=segredo")
    assert "Segredo" not in offered.html
    path = "/console/contacts"
    page = await rui.submit(path, at=f"{path}/new", name="Ana", companyId="Segredo Ltda")
    assert page.status == 400


async def test_a_list_of_people_of_a_deal(maria: Guest, api: Person) -> None:
    ids = [
        (await api.post("/api/contacts", {"name": n})).body["id"] for n in ("Ana", "Bia", "Caio")
    ]
    path = "/console/deals"
    typed = {"contactIds[0]": "Ana", "contactIds[1]": "", "contactIds[2]": ids[1]}
    page = await maria.submit(path, at=f"{path}/new", title="Feira", value="1.000,50", **typed)
    deal = (await api.get(f"/api/deals/{page.id}")).body
    assert (deal["value"], deal["contactIds"]) == (1000.5, ids[:2])
    form = await maria.get(f"{path}/{page.id}/edit")
    again = await maria.post(f"{path}/{page.id}", changed(form.html, **{"contactIds[1]": "Caio"}))
    assert again.path.endswith("done=saved")
    assert (await api.get(f"/api/deals/{page.id}")).body["contactIds"] == [ids[0], ids[2]]
    form = await maria.get(f"/console/deals/new?contactIds={ids[0]}&companyId=x")
    assert ("contactIds[0].is", ids[0]) in fields_of(form.html)


async def test_a_day_stays_a_day_and_a_time_is_of_the_owners_zone(
    console: Site, maria: Guest, api: Person
) -> None:
    await RestApi(console).move(api, "America/Sao_Paulo")
    path = "/console/tasks"
    page = await maria.submit(path, at=f"{path}/new", title="Day", dueDate="2026-12-15")
    one = f"/api/tasks/{page.id}"
    day = (await api.get(one)).body["dueDate"]
    assert (
        day
        == (await api.post("/api/tasks", {"title": "x", "dueDate": "2026-12-15"})).body["dueDate"]
    )
    assert "Dec 15, 2026" in page.html
    form = await maria.get(f"{path}/{page.id}/edit")
    assert ("dueDate", "2026-12-15") in fields_of(form.html)
    timed = changed(form.html, **{"dueDate.time": "14:30"})
    await maria.post(f"{path}/{page.id}", timed)
    assert (await api.get(one)).body["dueDate"] == "2026-12-15T17:30:00.000Z"
    form = await maria.get(f"{path}/{page.id}/edit")
    assert {("dueDate", "2026-12-15"), ("dueDate.time", "14:30")} <= set(fields_of(form.html))
    for wrong in ({"dueDate": "2026-02-30"}, {"dueDate": "", "dueDate.time": "10:00"}):
        refused = await maria.post(f"{path}/{page.id}", changed(form.html, **wrong))
        assert (refused.status, 'id="dueDate-fault"' in refused.html) == (400, True), wrong


async def test_a_lost_race_shows_both_and_loses_nothing(maria: Guest, api: Person) -> None:
    body = {"name": "Ana", "email": "ana@b.example", "position": "Buyer", "tags": ["vip"]}
    contact = (await api.post("/api/contacts", body)).body["id"]
    path = f"/console/contacts/{contact}"
    form = await maria.get(f"{path}/edit")
    theirs = {"name": "Ana Theirs", "notes": "theirs"}
    assert (await api.put(f"/api/contacts/{contact}", theirs)).status == 200
    mine = changed(form.html, name="Ana <Mine>", position="Chief")
    raced = await maria.post(path, mine, Accept_Language="pt-BR")
    assert (raced.status, "Alguém alterou este registro enquanto" in raced.html) == (409, True)
    kept = dict(fields_of(raced.html))
    # Mine in both changed inputs; theirs beside mine, and in the input that I left alone.
    assert (kept["name"], kept["position"], kept["notes"].strip()) == (
        "Ana <Mine>", "Chief", "theirs",
    )  # fmt: skip
    assert "<bdi>Ana Theirs</bdi>" in raced.html
    assert (await api.get(f"/api/contacts/{contact}")).body["name"] == "Ana Theirs"
    saved = await maria.post(path, fields_of(raced.html))
    assert saved.path.endswith("done=saved")
    now = (await api.get(f"/api/contacts/{contact}")).body
    assert (now["name"], now["position"], now["notes"], now["email"], now["tags"]) == (
        "Ana <Mine>", "Chief", "theirs", "ana@b.example", ["vip"],
    )  # fmt: skip


async def test_a_record_has_its_timeline_and_what_points_to_it(maria: Guest, api: Person) -> None:
    contact = (await api.post("/api/contacts", {"name": "Ana"})).body["id"]
    path = f"/console/contacts/{contact}"
    page = await maria.submit(f"{path}/notes", at=path, type="call", description=" Asked <b>. ")
    assert page.path == f"{path}?done=note_added"
    assert "Asked &lt;b&gt;." in page.html
    wrongs: list[dict[str, Any]] = [
        {"type": "call", "description": " "}, {"type": "x", "description": "kept <i>"},
    ]  # fmt: skip
    for wrong in wrongs:
        page = await maria.submit(f"{path}/notes", at=path, **wrong)
        assert (page.status, 'class="fault"' in page.html) == (400, True)
    assert "kept &lt;i&gt;" in page.html
    deals = [
        (await api.post("/api/deals", {"title": f"D{n}", "value": n, "contactIds": [contact]})).body
        for n in range(7)
    ]
    page = await maria.get(path)
    assert [f"/console/deals/{deal['id']}" in page.html for deal in deals] == 2 * [False] + 5 * [
        True
    ]
    every = await maria.get(page.link("All: Deals"))
    assert all(deal["id"] in every.html for deal in deals)
    assert f'href="/console/deals/new?contactIds={contact}"' in page.html
    events = await maria.get(f"{path}/events")
    # Without a drain no event has its place yet.
    assert (events.status, f"/console/events?q={contact}" in events.html) == (200, True)
    asked = await maria.get(f"{path}/delete")
    assert re.findall(r"<li>([^:<]*): <b>(\d+)</b>", asked.html) == [
        ("Activities", "1"), ("Deals", "7"),
    ]  # fmt: skip


async def test_pages_of_an_owner_with_very_many_contacts_are_bounded(db: Database) -> None:
    counted: Any = Counted(db, of_requests=True)
    async with serving(counted, CONFIG) as site:
        owner_id = await site.user()
        api = await RestApi(site).key_of(owner_id)
        company = (await api.post("/api/companies", {"name": "Acme"})).body["id"]
        await db.write(add_contacts, owner_id, 20_000, company)
        first = (await api.get("/api/contacts?limit=1")).body["data"][0]["id"]
        async with guest(site) as maria:
            await maria.sign_in()
            for path, most in (
                ("/console/contacts?limit=50", 8), (f"/console/contacts/{first}", 20),
                (f"/console/companies/{company}", 20), (f"/console/companies/{company}/delete", 9),
                (f"/console/contacts/{first}/edit", 6), ("/console/contacts/suggest?q=cont", 6),
            ):  # fmt: skip
                counted.reset()
                page = await maria.get(path)
                assert page.status == 200, path
                assert len(counted.statements) <= most, (path, len(counted.statements))
                assert len(page.html) < 120_000
            page = await maria.get(f"/console/companies/{company}")
            assert "500+" in page.html
            page = await maria.get("/console/contacts?limit=50")
            assert "20,000 in all" in page.html


async def test_numbers_are_in_the_form_of_the_account_s_language(maria: Guest, api: Person) -> None:
    account: Any = {"name": "Maria", "timezone": "America/Sao_Paulo"}
    await maria.submit("/console/account", **account, language="pt-BR")
    typed: Any = {
        "name": "Café",
        "price": "1.500",
        "compareAtPrice": "R$ 1.500,75",
        "stock": "12.000",
    }
    page = await maria.submit("/console/products", at="/console/products/new", **typed)
    path = f"/api/products/{page.id}"
    expected = {"price": 1500, "compareAtPrice": 1500.75, "stock": 12_000}
    made = (await api.get(path)).body
    assert {name: made[name] for name in expected} == expected
    shop = {"name": "Loja", "hostname": "x.example.com"}
    store = (await api.post("/api/stores", shop)).body["id"]
    coupon = {"storeId": store, "code": "C", "discountPercentage": 12.5}
    coupon_id = (await api.post("/api/coupons", coupon)).body["id"]
    webhook = await maria.webhook("https://hooks.example.com/crm", rate="1.000")
    for code, price, percentage, rate in (
        ("pt-BR", "1500,75", "12,5", "1000"), ("en", "1500.75", "12.5", "1000"),
    ):  # fmt: skip
        await maria.submit("/console/account", **account, language=code)
        form = (await maria.get(f"/console/products/{page.id}/edit")).html
        assert dict(fields_of(form))["compareAtPrice"] == price
        # As if each input was changed.
        saved = await maria.post(f"/console/products/{page.id}", changed(form, was=""))
        assert saved.status == 200
        made = (await api.get(path)).body
        assert {name: made[name] for name in expected} == expected
        form = (await maria.get(f"/console/coupons/{coupon_id}/edit")).html
        assert dict(fields_of(form))["discountPercentage"] == percentage
        form = (await maria.get(f"/console/webhooks/{webhook.id}/edit")).html
        assert f'name="rate" inputmode="decimal" maxlength="8" value="{rate}"' in form
    for code, least, file in (
        ("pt-BR", "1.500", "compareAtPrice;currency"), ("en", "1,500", "compareAtPrice,currency"),
    ):  # fmt: skip
        await maria.submit("/console/account", **account, language=code)
        await api.post("/api/deals", {"title": "Small", "value": 1.5})
        await api.post("/api/deals", {"title": "Large", "value": 1500.5})
        shown = (await maria.get(f"/console/deals?minValue={least}")).html
        assert ("Large" in shown, "Small" in shown) == (True, False)
        shown = (await maria.get("/console/export/products.csv")).html
        assert file in shown
        assert ("1500,75" in shown, "1500.75" in shown) == (code == "pt-BR", code == "en")

"""Leads: contacts of the store's owner, an e-book for one, and nothing revealed."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.operations import operation
from tests.support.rest import Person, RestApi
from tests.support.shop import Answer, Shop, open_shop
from tests.support.site import serving

MARIA = {"email": "maria@example.com"}


async def lead(shop: Shop, **values: Any) -> Answer:
    return await shop.browser().do("lead", "success clientMutationId", **values)


async def contacts(who: Person) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await who.get("/api/contacts")).body["data"]
    return listed


async def notes(who: Person, contact: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await who.get(f"/api/activities?relatedTo={contact}")).body[
        "data"
    ]
    return listed


async def ebook(shop: Shop, **values: Any) -> dict[str, Any]:
    body = {
        "storeId": shop.store["id"], "title": "The guide", "fileUrl": "https://files.example/g.pdf",
    } | values  # fmt: skip
    reply = await shop.owner.post("/api/ebooks", body)
    assert reply.status == 201, reply.text
    record: dict[str, Any] = reply.body
    return record


async def test_a_lead_becomes_a_contact_with_a_note(shop: Shop) -> None:
    answer = await shop.browser().send(*operation("lead"))
    assert answer.data == {"lead": {"success": True}}
    [contact] = await contacts(shop.owner)
    assert (contact["name"], contact["email"]) == ("Maria da Silva", "maria@example.com")
    assert (contact["phone"], contact["source"]) == ("(11) 98888-7777", "storefront")
    assert contact["tags"] == ["lead"]
    [note] = await notes(shop.owner, contact["id"])
    assert (note["type"], note["description"]) == ("note", "Lead: footer")
    assert [name for name, _ in await shop.api.events()] == ["contact.created"]


async def test_a_second_lead_fills_blanks_and_is_noted(shop: Shop) -> None:
    assert (await lead(shop, email="maria@example.com")).data["lead"]["success"] is True
    again = await lead(
        shop, email=" MARIA@example.com", name=" Maria ", phone="", source="", clientMutationId="7"
    )
    # The same response as for an unknown person.
    assert again.data == {"lead": {"success": True, "clientMutationId": "7"}}
    [contact] = await contacts(shop.owner)
    assert contact["name"] == "Maria"
    assert "phone" not in contact
    listed = await notes(shop.owner, contact["id"])
    assert [note["description"] for note in listed] == ["Lead: shop.example"] * 2
    assert [name for name, _ in await shop.api.events()] == ["contact.created", "contact.updated"]


async def test_a_lead_overwrites_nothing_and_the_note_keeps_what_was_sent(shop: Shop) -> None:
    body = {"name": "Maria", "email": "maria@example.com", "phone": "11 3333-4444"}
    known = (await shop.owner.post("/api/contacts", body)).body
    assert (await lead(shop, email="maria@example.com", name="Eve", phone="911")).data
    [contact] = await contacts(shop.owner)
    assert (contact["name"], contact["phone"]) == ("Maria", "11 3333-4444")
    assert contact["source"] == "api"
    [note] = await notes(shop.owner, known["id"])
    assert note["metadata"] == {
        "storeId": shop.store["id"], "hostname": "shop.example", "name": "Eve", "phone": "911",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"email": "maria"}, "email"),
        ({"email": ""}, "email"),
        ({"email": "m@example.com", "phone": "call me"}, "phone"),
        ({"email": "m@example.com", "name": "M" * 201}, "name"),
        ({"email": "m@example.com", "source": "s" * 101}, "source"),
    ],
)
async def test_faults_name_their_field(shop: Shop, values: dict[str, Any], field: str) -> None:
    answer = await lead(shop, **values)
    assert (answer.status, answer.code) == (200, "BAD_USER_INPUT")
    assert answer.error["extensions"]["field"] == field
    assert answer.body["data"] == {"lead": None}
    assert await contacts(shop.owner) == []


async def test_a_character_that_no_database_stores_is_refused(shop: Shop) -> None:
    values = r'hostname: "shop.example", email: "m@example.com", name: "a\u0000b"'
    answer = await shop.browser().send(f"mutation {{ lead(input: {{{values}}}) {{ success }} }}")
    assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", "name")


async def test_an_ebook_lead_gets_the_file(shop: Shop) -> None:
    book = await ebook(shop)
    company = (await shop.owner.post("/api/companies", {"name": "ACME LTDA"})).body
    answer = await shop.browser().send(*operation("ebookLead", ebookId=book["id"]))
    assert answer.data["ebookLead"] == {
        "success": True, "downloadUrl": "https://files.example/g.pdf",
    }  # fmt: skip
    [contact] = await contacts(shop.owner)
    assert (contact["position"], contact["consent"]) == ("Buyer", True)
    assert contact["companyId"] == company["id"]
    assert contact["tags"] == ["lead", "ebook"]
    [note] = await notes(shop.owner, contact["id"])
    assert note["description"] == "Lead: shop.example (e-book: The guide)"
    assert note["metadata"]["ebookId"] == book["id"]


async def test_a_box_that_is_not_ticked_withdraws_nothing(shop: Shop) -> None:
    book = await ebook(shop)
    for accepts, consent in ((False, None), (True, True), (False, True)):
        answer = await shop.browser().do(
            "ebookLead", "success", ebookId=book["id"], acceptsMarketing=accepts, **MARIA
        )
        assert answer.data
        [contact] = await contacts(shop.owner)
        assert contact.get("consent") is consent


async def test_an_ebook_is_named_by_its_global_id_too(shop: Shop) -> None:
    book = await ebook(shop)
    text = base64.urlsafe_b64encode(f"Ebook:{book['id']}".encode()).decode()
    for ebook_id in (book["globalId"], text, book["id"].upper()):
        answer = await shop.browser().do("ebookLead", "downloadUrl", ebookId=ebook_id, **MARIA)
        assert answer.data["ebookLead"]["downloadUrl"] == "https://files.example/g.pdf"


async def test_an_ebook_of_another_store_is_unknown(shop: Shop) -> None:
    other = await open_shop(shop.api, "other.example")
    body = {"hostname": "second.example", "name": "Second"}
    second = (await shop.owner.post("/api/stores", body)).body
    inactive = await ebook(shop, active=False)
    foreign = [
        (await ebook(other))["id"],
        (await ebook(shop, storeId=second["id"]))["id"],
        inactive["id"],
        "0" * 24,
    ]
    refused = [
        await shop.browser().do("ebookLead", "downloadUrl", ebookId=ebook_id, **MARIA)
        for ebook_id in (*foreign, "rubbish")
    ]
    assert {answer.code for answer in refused} == {"BAD_USER_INPUT"}
    assert {answer.error["extensions"]["field"] for answer in refused} == {"ebookId"}
    # Which ids exist is not revealed.
    assert len({answer.error["message"] for answer in refused[:4]}) == 1
    assert await contacts(shop.owner) == await contacts(other.owner) == []


@pytest.fixture
async def narrow(db: Database) -> AsyncIterator[Shop]:
    """A store whose forms are limited."""
    limits = Limits(read_per_second=0, write_per_second=0, sign_in_per_minute=0, forms_per_minute=3)
    async with serving(db, Config(limits=limits)) as site:
        shop = await open_shop(RestApi(site))
        yield shop
        await shop.close()


async def test_forms_of_one_address_are_limited(narrow: Shop) -> None:
    book = await ebook(narrow)
    aliases = " ".join(
        f'm{i}: lead(input: {{hostname: "shop.example", email: "m{i}@example.com"}}) {{ success }}'
        for i in range(2)
    )
    assert (await narrow.browser().send(f"mutation {{ {aliases} }}")).data
    again = await narrow.browser().do("ebookLead", "success", ebookId=book["id"], **MARIA)
    assert again.data
    for refused in (
        await lead(narrow, **MARIA),
        await narrow.browser().do("ebookLead", "success", ebookId=book["id"], **MARIA),
    ):
        assert (refused.status, refused.code) == (200, "RATE_LIMITED")
        assert refused.error["extensions"]["retryAfter"] > 0
    assert len(await contacts(narrow.owner)) == 3

"""Leads: contacts of the store's owner, an e-book for one, and nothing revealed."""

import base64
from typing import Any

from tests.support.operations import operation
from tests.support.rest import Person
from tests.support.shop import Answer, Shop, open_shop

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


async def test_a_character_that_no_database_stores_is_refused(shop: Shop) -> None:
    values = r'hostname: "shop.example", email: "m@example.com", name: "a\u0000b"'
    answer = await shop.browser().send(f"mutation {{ lead(input: {{{values}}}) {{ success }} }}")
    assert (answer.code, answer.error["extensions"]["field"]) == ("BAD_USER_INPUT", "name")


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

"""The search in the frame, and the searches and counts of lists."""

from __future__ import annotations

import re
from html import unescape

import pytest

from gateway.console.records import listing
from tests.gateway.console.crm.conftest import api
from tests.gateway.console.crm.test_verbs import made
from tests.support.console import Guest
from tests.support.rest import Person

__all__ = ["api"]


async def test_the_frame_finds_the_owners_records(
    maria: Guest, api: Person, rui: Guest, capsys: pytest.CaptureFixture[str]
) -> None:
    name = '<i>Ana "Sá"</i>'
    ana = await made(api, "contacts", name=name, phone="+55 (11) 98888-7777")
    for n in range(9):
        await made(api, "tasks", title=f"Call Ana Sá {n}", contactId=ana["id"])
    page = await maria.get("/console/contacts")
    [form] = re.findall(r'<form class="find"[^>]*>.*?</form>', page.html)
    assert ('action="/console/find"' in form, 'name="q"' in form, "method" in form) == (
        True, True, False,
    )  # fmt: skip
    page = await maria.get("/console/find?q=S%C3%81++ana")
    links = [unescape(one) for one in re.findall('href="(/console/[^"]+)"', page.html)]
    assert f"/console/contacts/{ana['id']}" in links
    assert "/console/contacts?search=S%C3%81++ana" in links
    assert unescape(name) not in page.html
    assert len([one for one in links if re.fullmatch("/console/tasks/[0-9a-f]{24}", one)]) == 8
    rest = await maria.get("/console/tasks?search=S%C3%81++ana")
    assert "9 results" in rest.html
    for text in ("98888-7777", "11 98888"):
        assert ana["id"] in (await maria.get(f"/console/find?q={text}")).html
        assert ana["id"] in (await maria.get(f"/console/contacts?search={text}")).html
        assert ana["id"] in (await maria.get(f"/console/export/contacts.csv?search={text}")).html
        assert ana["id"] not in (await rui.get(f"/console/find?q={text}")).html
    for text in ("", "%00", "%1f", "%ff", "x" * 5_000):
        assert (await maria.get(f"/console/find?q={text}")).status == 200
    log = capsys.readouterr()
    assert "98888" not in log.out + log.err


async def test_activities_are_found_by_their_words(maria: Guest, api: Person, rui: Guest) -> None:
    contact = await made(api, "contacts", name="Ana Sá")
    for text in ("Pediu um novo orçamento", "Ligar às 9"):
        await made(
            api, "activities", type="note", description=text, relatedTo=contact["id"],
            relatedType="contact",
        )  # fmt: skip
    page = await maria.get("/console/activities?search=ORCAMENTO++novo")
    assert ("1 result<" in page.html, 'type="search" name="search"' in page.html) == (True, True)
    assert "Pediu um novo or" in page.html
    assert "Ligar" not in page.html
    assert "Pediu um novo or" not in (await rui.get("/console/activities?search=novo")).html


async def test_a_narrowed_list_is_counted_to_a_bound(
    maria: Guest, api: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_COUNTED", 26)
    for n in range(28):
        await made(api, "contacts", name=f"Maria {n}", tags=["x"] if n else [])
    assert "28 in all" in (await maria.get("/console/contacts")).html
    first = await maria.get("/console/contacts?search=maria")
    assert "26+ results" in first.html
    second = await maria.get(first.link("Next page"))
    assert "26+ results" in second.html
    back = await maria.get(second.link("Previous page"))
    assert re.findall("/console/contacts/[0-9a-f]{24}", back.html) == re.findall(
        "/console/contacts/[0-9a-f]{24}", first.html
    )
    assert "1 result<" in (await maria.get("/console/contacts?search=27+maria")).html

"""Each resource of the catalogue through its pages: list, view, form, delete, and who may."""

from __future__ import annotations

import html
import re
from itertools import cycle
from typing import Any

import pytest

from gateway.console.records.resource_pages import ResourcePages
from gateway.console.records.sections import SECTIONS
from gateway.records.resource import Field
from gateway.records.values import dates
from gateway.records.values.schemas import INSTANT
from outbox.database.transaction import Database, Tx
from tests.gateway.console.test_owners import routes
from tests.support.console import Guest
from tests.support.drain import rows
from tests.support.rest import Person, RestApi
from tests.support.site import Site
from tests.support.stocked import stock

ENDS = ("0001-01-01", "9999-12-31")
PARTS = ([], *([name] for name in SECTIONS))
"""The parts of addresses that name what a page is of: the first page, or a resource."""
HOSTILE = "<script>alert('x')</script>\u202e\x07\""


async def owner_of(db: Database) -> str:
    [user] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    return str(user["id"])


async def stocked(console: Site, count: int = 1) -> dict[str, str]:
    """Return the id of a record of Maria's by the plural of each resource."""
    last = await stock(console.db, await owner_of(console.db), count)
    return {name: last[section.resource.table] for name, section in SECTIONS.items()}


def fields_of(page: str) -> list[tuple[str, str]]:
    """Return what a browser would send of the form in the page's main part."""
    main = page.partition("<main")[2]
    form = re.search(r'<form class="card.*?</form>', main, re.DOTALL)
    assert form is not None, main
    text, sent = form[0], list[tuple[str, str]]()
    for tag, inner in re.findall(
        r"<(?:input|select|textarea)([^>]*)>(?:\n?((?:(?!<input|<label).)*?)</(?:select|textarea)>)?",
        text, re.DOTALL,
    ):  # fmt: skip
        known = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        name = html.unescape(known.get("name", ""))
        if not name or (known.get("type") in ("checkbox", "radio") and " checked" not in tag):
            continue
        if "<option" in inner:
            options = re.findall(r'<option value="([^"]*)"( selected)?', inner)
            value = next((one for one, chosen in options if chosen), options[0][0])
        else:
            value = known.get("value", inner)
        sent.append((name, html.unescape(value)))
    return sent


def typed_of(field: Field, ids: dict[str, str], section: ResourcePages) -> list[tuple[str, str]]:
    """Return what a person types into the inputs of a field for its declared example."""
    example: Any = field.example
    if example is None:
        return []
    target = field.reference
    if target is not None:
        table = target.table or "contacts"
        [plural] = [name for name, one in SECTIONS.items() if one.resource.table == table]
        return [(f"{field.name}[0]" if field.listed_in else field.name, ids[plural])]
    if isinstance(example, bool):
        return [(field.name, "true")] if example else []
    if isinstance(example, list) and example and isinstance(example[0], dict):
        return [
            (f"{field.name}[{place}].{name}", "\n".join(value) if isinstance(value, list)
             else str(value).lower() if isinstance(value, bool) else str(value))
            for place, row in enumerate(example)
            for name, value in row.items()
            if not name.lower().endswith("id") and value is not False
        ]  # fmt: skip
    if isinstance(example, list):
        if "enum" in field.format.schema["items"]:
            return [(field.name, one) for one in example]
        return [(field.name, "\n".join(example))]
    if isinstance(example, dict):
        return [(field.name, '{"durationSeconds": 340}')]
    if isinstance(example, (int, float)):
        return [(field.name, str(example).replace(".", ","))]
    day, _, time = str(example).partition("T")
    if time and len(day) == len("2026-12-15"):
        return [(field.name, day), (f"{field.name}.time", time[:5])]
    return [(field.name, str(example))]


async def test_a_list_is_read_forward_and_back(console: Site, maria: Guest) -> None:
    await stocked(console, 28)
    for section in SECTIONS.values():
        first = await maria.get(section.path)
        ids = [re.findall(r'id="r-([0-9a-f]{24})"', first.html)]
        assert len(ids[0]) == 25, section.path
        assert "28 in all" in first.html
        second = await maria.get(first.link("Next page"))
        ids.append(re.findall(r'id="r-([0-9a-f]{24})"', second.html))
        assert len(set(ids[0] + ids[1])) == 28
        assert 'rel="next"' not in second.html
        back = await maria.get(second.link("Previous page"))
        assert re.findall(r'id="r-([0-9a-f]{24})"', back.html) == ids[0]
        assert 'rel="prev"' not in back.html
        for one, sign in zip(section.resource.sorts, cycle(("", "-")), strict=False):
            page = await maria.get(f"{section.path}?sort={sign}{one.name}&limit=50")
            whole = re.findall(r'id="r-([0-9a-f]{24})"', page.html)
            assert len(whole) == 28, one.name
            first = await maria.get(f"{section.path}?sort={sign}{one.name}")
            last = await maria.get(first.link("Next page"))
            assert re.findall(r'id="r-([0-9a-f]{24})"', first.html + last.html) == whole
            assert 'rel="next"' not in last.html
            back = await maria.get(last.link("Previous page"))
            assert re.findall(r'id="r-([0-9a-f]{24})"', back.html) == whole[:25]
            way = "descending" if sign else "ascending"
            assert one.name not in section.columns or f'aria-sort="{way}"' in page.html
        head = await maria.http.head(section.path)
        assert (head.status, await head.read()) == (200, b"")


async def test_a_list_takes_every_filter_and_refuses_none(console: Site, maria: Guest) -> None:
    await stocked(console)
    some = {"text": "x", "boolean": "true", "money": "1.234,56", "cnpj": "11.222.333/0001-81",
            "from": "2026-01-01", "to": "2026-12-31", "id": "f" * 24}  # fmt: skip
    for section in SECTIONS.values():
        queries = [
            f"{offered.name}={value!s}".replace("\0", "%00")
            for offered in section.resource.filters
            for value in (*(offered.allowed or (some[offered.kind],)), HOSTILE, "\0", "9" * 30)
        ]
        for query in (
            *queries, "search=%00", "search=%ED%A0%80", "after=x", "before=1-2", "page=0",
            "page=99999999999", "limit=1000", "sort=id%3Bdrop", "column=owner_id",
            "column=createdAt&column=x",
        ):  # fmt: skip
            page = await maria.get(f"{section.path}?{query}")
            assert page.status == 200, (section.path, query)
            assert "<script>alert" not in page.html


async def test_a_record_is_shown_and_what_it_says_is_inert(console: Site, maria: Guest) -> None:
    ids = await stocked(console)

    async def spoil(tx: Any, section: ResourcePages, record_id: str) -> None:
        for one in section.resource.fields:
            if (
                one.format.schema.get("type") == "string" and one.reference is None
                and "enum" not in one.format.schema and one.unique is None
                and "anyOf" not in one.format.schema and one.name not in ("number", "customerId")
                and not one.name.endswith("Id")
            ):  # fmt: skip
                sql = f"update {section.resource.table} set {one.column} = $1 where id = $2"
                await tx.run(sql, HOSTILE, record_id)

    for plural, section in SECTIONS.items():
        await console.db.write(spoil, section, ids[plural])
        for path in ("", f"/{ids[plural]}", f"/{ids[plural]}/edit", f"/{ids[plural]}/delete"):
            page = await maria.get(section.path + path)
            if page.status == 404:
                continue
            assert page.status == 200, path
            assert "<script>alert" not in page.html
            assert "\u202e" not in page.html or path.endswith("/edit")
            assert path != f"/{ids[plural]}" or ids[plural] in page.html


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Europe/Berlin"])
async def test_a_date_at_the_ends_of_the_calendar_breaks_no_page(
    console: Site, maria: Guest, zone: str
) -> None:
    """Nor does a bare date; the zone may lead out of the years 1 to 9999."""
    ids = await stocked(console)
    owner = Person(console.http, await owner_of(console.db), {})
    await RestApi(console).move(owner, zone)

    async def set_dates(tx: Tx, micros: int, bare: bool) -> None:
        for section in SECTIONS.values():
            for one in section.resource.fields:
                if one.format.shown is INSTANT:
                    table = section.resource.table
                    await tx.run(f"update {table} set {one.column} = $1", micros)
                    for day in (each.column for each in one.beside if each.part):
                        await tx.run(f"update {table} set {day} = $1", bare)

    pages = [path for method, path in routes() if method == "GET" and path.split("/")[2:3] in PARTS]
    paths = [
        re.sub(r"/([a-z-]+)/\{id\}", lambda of: f"/{of[1]}/{ids[of[1]]}", path)
        for path in (*pages, *(f"/console/tasks/due/day?day={day}" for day in ENDS))
    ]
    for at in (*ENDS, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"):
        micros = dates.parse(at)
        assert micros is not None
        await console.db.write(set_dates, micros, dates.is_day(at))
        for path in paths:
            assert (await maria.get(path)).status < 500, (at, path)
        task = await maria.get(f"/console/tasks/{ids['tasks']}")
        assert f'data-day="{at}"' in task.html or f'datetime="{dates.show(micros)}"' in task.html


async def test_a_record_is_created_by_its_examples_and_deleted(console: Site, maria: Guest) -> None:
    ids = await stocked(console)
    for section in SECTIONS.values():
        if section.entry.create is None:
            assert (await maria.get(f"{section.path}/new")).status == 404
            continue
        # The examples are taken in the store and the installation already.
        unique = {one.name for one in section.resource.fields if one.unique is not None}
        typed: dict[str, list[tuple[str, str]]] = {}
        for field in section.resource.fields:
            if field.on_create:
                typed[field.name] = typed_of(field, ids, section)
        for name in unique:
            typed[name] = [(key, value.replace(value[:3], "new", 1)) for key, value in typed[name]]
        if section.name in ("invoices", "quotes"):
            typed.pop("total")
        form = await maria.get(f"{section.path}/new")
        sent = [("csrf_token", form.csrf), *(pair for pairs in typed.values() for pair in pairs)]
        page = await maria.post(section.path, sent)
        assert page.path.startswith(f"{section.path}/"), faults_in(page.html)
        assert "done=" in page.path, faults_in(page.html)
        if not section.resource.deletable:
            assert (await maria.get(f"{section.path}/{page.id}/delete")).status == 404
            continue
        asked = await maria.get(f"{section.path}/{page.id}/delete")
        stale = await maria.submit(asked.path, version="0")
        assert stale.status == 409
        gone = await maria.post(asked.path, fields_of(asked.html))
        assert gone.path.startswith(f"{section.path}?done=")
        assert (await maria.get(f"{section.path}/{page.id}")).status == 404


async def test_a_refused_form_keeps_what_was_typed(maria: Guest) -> None:
    for section in SECTIONS.values():
        if section.entry.create is None:
            continue
        texts = [
            one.name for one in section.resource.fields
            if one.on_create and one.format.schema.get("type") == "string"
            and "enum" not in one.format.schema and one.reference is None
            and "anyOf" not in one.format.schema
        ]  # fmt: skip
        typed = [(name, f"{number} <b> \0x") for number, name in enumerate(texts)]
        form = await maria.get(f"{section.path}/new")
        page = await maria.post(section.path, [("csrf_token", form.csrf), *typed])
        assert page.status == 400
        kept = dict(fields_of(page.html))
        for name, value in typed:
            assert kept[name].strip() == value.strip(), name


def faults_in(page: str) -> list[str]:
    return re.findall(r'class="fault">([^<]*)|role="alert">([^<]*)', page)

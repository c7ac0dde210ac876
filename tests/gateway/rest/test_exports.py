"""Exports over HTTP: what a file has, and that an import can read it."""

from __future__ import annotations

import asyncio
import csv
import io
import socket

import pytest

from tests.support.crm_rows import add_contacts
from tests.support.rest import Person, RestApi

ODD = (
    "=1+1", "+55 11", "-2", "@x", "\ttab", "\rcr", "'=1", "'", "''t", "'t Hooft", 'a;b,c\n"d"',
    "a;=1", "b,\t@x", "c\n'-1", 'd;"+1', "e\u00a0|\uff1d1",
)  # fmt: skip


def rows_of(text: str, separator: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=separator))


async def test_a_file_has_the_records_of_the_list(ana: Person, bia: Person) -> None:
    for number in range(3):
        body = {"name": f"Ana {number}", "tags": ["vip", "fair"], "phone": "+55 11 98888-7777"}
        assert (await ana.post("/api/contacts", body)).status == 201
    await bia.post("/api/contacts", {"name": "Other"})
    reply = await ana.get("/api/export/contacts.csv")
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert reply.headers["Content-Disposition"] == 'attachment; filename="contacts.csv"'
    rows = rows_of(reply.text)
    assert [row["name"] for row in rows] == ["Ana 0", "Ana 1", "Ana 2"]
    assert (rows[0]["tags"], rows[0]["phone"], rows[0]["email"]) == (
        '["vip","fair"]', "'+55 11 98888-7777", "",
    )  # fmt: skip
    found = await ana.get("/api/export/contacts.csv?search=ana%201&separator=;&bom=true")
    assert found.text.startswith("\ufeffid;name;")
    assert [row["name"] for row in rows_of(found.text, ";")] == ["Ana 1"]
    sorted_ = await ana.get("/api/export/contacts.csv?sort=-name")
    assert [row["name"] for row in rows_of(sorted_.text)] == ["Ana 2", "Ana 1", "Ana 0"]
    assert (await ana.get("/api/export/contacts.csv?tag=none")).text.count("\n") == 1
    assert (await ana.get("/api/export/contacts.csv?ids=")).text.count("\n") == 1
    head = await ana.call("HEAD", "/api/export/contacts.csv")
    assert (head.status, head.text) == (200, "")
    wrong = await ana.get("/api/export/contacts.csv?separator=x")
    assert (wrong.status, wrong.faults) == (400, {"separator": "invalid_parameter"})


async def test_no_cell_is_a_formula(ana: Person) -> None:
    for text in ODD:
        body = {"name": f"x{text}", "notes": text, "position": ""}
        assert (await ana.post("/api/contacts", body)).status == 201
    rows = rows_of((await ana.get("/api/export/contacts.csv")).text)
    assert [row["notes"][0] not in "=+-@\t\r" for row in rows] == [True] * len(ODD)
    assert {row["position"] for row in rows} == {"'"}


@pytest.mark.slow
async def test_a_client_that_goes_away_ends_its_export(api: RestApi, ana: Person) -> None:
    """An owner has one export at a time, so the next one shows that the first has ended."""
    count = 40_000
    await api.db.write(add_contacts, ana.user_id, count, "0" * 24)
    wire = socket.socket()
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await asyncio.to_thread(wire.connect, ("127.0.0.1", api.site.port))
    key = ana.headers["X-API-Key"]
    request = f"GET /api/export/contacts.csv HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n\r\n"
    wire.sendall(request.encode())
    assert (await asyncio.to_thread(wire.recv, 1024)).startswith(b"HTTP/1.1 200")
    next_one = asyncio.ensure_future(ana.get("/api/export/contacts.csv"))
    # Other requests go on beside both.
    assert (await ana.get("/api/contacts?search=contact")).body["total"] == count
    assert not next_one.done()
    wire.close()
    assert (await next_one).text.count("\n") == count + 1

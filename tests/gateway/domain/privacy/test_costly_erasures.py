"""Costly erasures: what each of their transactions may do, and that each one ends."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gateway.domain import import_lines
from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Person as Whom
from gateway.domain.privacy import erasure_units, page_sizes, persons, progress, searches
from gateway.domain.privacy.persons import Persons
from gateway.domain.privacy.traces import Traces
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database, Row, Tx
from outbox.errors import DatabaseUnavailable
from outbox.queue.drain.fanout import fan_out
from outbox.queue.upkeep import erasure as erasing_log
from outbox.queue.upkeep import erasure_requests
from tests.gateway.rest.test_imports import upload
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.erasing import begun, counted, inside, now, units
from tests.support.rest import Person, RestApi

NAME, EMAIL = "Maria Quux", "maria@quux.example"
PAGE = 20_000
KEEP = """
insert into idempotency (owner_id, key, operation, fingerprint, outcome, created_at)
values ($1, $2, 'POST /api/x', $3, $4, $5)
"""


@pytest.fixture(autouse=True)
def scrubbed(monkeypatch: pytest.MonkeyPatch, db: Database) -> None:
    """Count the files of the test's database as clean; tests/system searches those of a server."""

    async def scrub(_: Any) -> bool:
        return True

    monkeypatch.setattr(db, "scrub", scrub)
    # The duty does all.
    monkeypatch.setattr(progress, "UNITS", 0)


async def rows(tx: Tx, sql: str, *args: Any) -> list[Row]:
    return await tx.all(sql, *args)


async def made(who: Person, plural: str, **body: Any) -> str:
    reply = await who.post(f"/api/{plural}", body)
    assert reply.status == 201, reply.text
    return str(reply.body["id"])


async def crowded(who: Person, name: str, tasks: int, words: int = 2_000) -> str:
    """Make a contact with tasks whose long texts name it; return its id."""
    contact_id = await made(who, "contacts", name=name)
    for number in range(tasks):
        text = f"{name} {number} " + "maria " * words
        await made(who, "tasks", title=name, contactId=contact_id, description=text)
    return contact_id


async def ask(who: Person, contact_id: str) -> str:
    reply = await who.post(f"/api/contacts/{contact_id}/erase")
    assert reply.status == 202, reply.text
    return str(reply.body["id"])


async def run(api: RestApi) -> None:
    """Run the duty until all is done, as a server does with the fan-out before it."""
    for _ in range(3):
        await api.db.write(fan_out, ROOM)
        await Persons(api.db, api.site.app[KEYRING]).run_once()


async def test_no_text_is_searched_while_a_transaction_writes(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no transaction reads or writes more than its part."""
    contact_id = await crowded(ana, NAME, 12)
    searched = {True: 0, False: 0}
    for name in ("redact", "within"):
        real = getattr(Traces, name)

        def noted(self: Traces, text: str, *, close: bool, real: Any = real) -> Any:
            searched[inside.get()] += len(text)
            return real(self, text, close=close)

        monkeypatch.setattr(Traces, name, noted)
    monkeypatch.setattr(searches, "BYTES", PAGE)
    with counted(api.db, monkeypatch) as done:
        await ask(ana, contact_id)
        await run(api)
    # The title and the description of each task, once; its event shows the title, which names her.
    whole = sum(len(f"{NAME} {number} ") + 12_000 + len(NAME) for number in range(12))
    assert (searched[True], searched[False]) == (0, whole)
    # Two tasks with their events and locks.
    assert max(one.bytes for one in done if one.kind == "write") < 6 * PAGE
    left = await api.db.read(rows, "select title, description from tasks")
    assert all("maria" not in (row["title"] + row["description"]).lower() for row in left)


async def test_a_record_that_changes_after_its_search_is_searched_again(
    api: RestApi, ana: Person
) -> None:
    contact_id = await crowded(ana, NAME, 2, words=4_000)
    erasure_id = await ask(ana, contact_id)
    changed = 0
    async for erasure in units(api.db, erasure_id):
        wanted = await api.db.read(rows, "select id from tasks where description like '%maria%'")
        if erasure.stage == "records" and wanted and not changed:
            # What the next unit takes out was searched before, if the bound of versions is off.
            [row, *_] = wanted
            found = await searches.search(api.db, erasure, [("tasks", row["id"])])
            path = f"/api/tasks/{row['id']}"
            assert (await ana.put(path, {"description": f"New: {NAME}."})).status == 200
            again = await api.db.write(erasure_units.step, erasure_id, found)
            assert ("tasks", row["id"]) in again
            changed += 1
    assert changed
    left = await api.db.read(rows, "select description from tasks")
    assert "New: *** ***." in {row["description"] for row in left}


@contextmanager
def ending(db: Database, costly: str, most: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the database end each unit of the erasure that asks for more than so many statements."""
    real = db.write

    async def write(unit: Any, *args: Any, **kwargs: Any) -> Any:
        async def limited(tx: Tx, *rest: Any, **named: Any) -> Any:
            return await unit(_Limited(tx, most), *rest, **named)

        is_costly = any(costly in str(one) for one in args) and "put_aside" not in unit.__name__
        return await real(limited if is_costly else unit, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(db, "write", write)
        yield


class _Limited:
    """Passes so many statements to a transaction, then ends it as a statement timeout does."""

    def __init__(self, tx: Tx, most: int) -> None:
        object.__setattr__(self, "_tx", tx)
        object.__setattr__(self, "_left", most)

    def __getattr__(self, name: str) -> Any:
        if name in ("one", "all", "run", "many"):
            object.__setattr__(self, "_left", self._left - 1)
            if self._left < 0:
                raise DatabaseUnavailable("busy", "canceling statement due to statement timeout")
        return getattr(self._tx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._tx, name, value)


async def test_a_costly_erasure_is_put_aside_and_ends(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of its owner end first, and a restart keeps what it knows."""
    monkeypatch.setattr(persons, "CYCLE_SECONDS", 0)
    costly = await ask(ana, await crowded(ana, NAME, 24, words=1))
    cheap = await ask(ana, await crowded(ana, "Rui Lima", 1))
    ended: list[str] = []
    with ending(api.db, costly, 60, monkeypatch):
        for number in range(60):
            if number % 10 == 0:
                duty = Persons(api.db, api.site.app[KEYRING])
            await duty._records([], set())
            if len(ended) == 2:
                break
            for one in (cheap, costly):
                if one not in ended and (await now(api.db, one)).stage == "log":
                    ended.append(one)
    assert ended == [cheap, costly]
    # 50 records, then 25, 12 and so on.
    assert 2 <= (await now(api.db, costly)).put_aside <= 4
    await run(api)
    assert (await ana.get(f"/api/erasures/{costly}")).body["state"] == "done"


async def test_a_database_that_is_away_puts_nothing_aside(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    erasure_id = await ask(ana, await crowded(ana, NAME, 2, words=4_000))

    async def write(*_: Any, **__: Any) -> Any:
        raise DatabaseUnavailable("connection", "away")

    with monkeypatch.context() as patch:
        patch.setattr(api.db, "write", write)
        with pytest.raises(DatabaseUnavailable):
            await Persons(api.db, api.site.app[KEYRING]).run_once()
    assert (await now(api.db, erasure_id)).put_aside == 0


async def test_a_costly_erasure_of_events_is_put_aside_and_ends(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in the queue."""
    ids = [await made(ana, "contacts", name=f"{NAME} {number}") for number in range(2)]
    for number in range(30):
        assert (await ana.put(f"/api/contacts/{ids[0]}", {"notes": f"{number}"})).status == 200
    await api.db.write(fan_out, ROOM)
    for record_id in ids:
        await api.db.write(erasure_requests.request, ana.user_id, [record_id])
    requests, _, _ = await api.db.read(erasure_requests.next_open, "")
    [costly] = [one.id for one in requests if one.record_ids == (ids[0],)]
    real, order = api.db.write, list[int]()

    async def write(unit: Any, *args: Any, **kwargs: Any) -> Any:
        if unit.__name__ == "erase_bodies":
            order.append(len(args[0]))
            if len(args[0]) > 8:
                raise DatabaseUnavailable("busy", "canceling statement due to statement timeout")
        return await real(unit, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(api.db, "write", write)
        await erasing_log.Erasure(api.db).run_once()
    # Both together, then the costly one, and the other one before the costly one tries again.
    assert order[:3] in ([32, 31, 1], [32, 1, 31])
    assert sum(size for size in order if size <= 8) == 32
    assert await api.db.read(rows, "select id from erasures") == []
    left = "select id from events where body is not null and record_id = $1"
    assert await api.db.read(rows, left, ids[0]) == []
    assert costly


async def add_lines(tx: Tx, import_id: str, first: int, cells: list[list[str]]) -> None:
    await import_lines.add(tx, import_id, list(enumerate(cells, first)))


async def test_lines_are_searched_once_in_pages_of_bytes(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_sizes, "BYTES", PAGE)
    import_id = await waiting(ana)
    # Short lines, then long ones.
    cells = [[EMAIL.upper() if number % 100 == 0 else f"n{number}"] for number in range(600)]
    cells += [["x" * 9_000, EMAIL if number % 10 == 0 else ""] for number in range(60)]
    await api.db.write(add_lines, import_id, 10, cells)
    contact_id = await made(ana, "contacts", name=NAME, email=EMAIL)
    with counted(api.db, monkeypatch) as done:
        erasure_id = await ask(ana, contact_id)
        async for _ in units(api.db, erasure_id):
            pass
    size = sum(len(json.dumps(one)) for one in cells)
    pages = [one for one in done if one.kind == "scan"]
    assert max(one.bytes for one in pages) < PAGE + 10_000
    # Each line once; the rest are ids of imports and stored responses.
    assert size < sum(one.bytes for one in pages) < 1.1 * size
    writes = [one for one in done if one.kind == "write"]
    assert max(one.bytes for one in writes) < PAGE / 2
    assert len(writes) < 80
    assert (await now(api.db, erasure_id)).erased["importLines"] == 12
    [left] = await api.db.read(rows, "select count(*) as n from import_lines where line >= 10")
    assert left["n"] == 648


async def waiting(who: Person) -> str:
    """Upload a file whose import waits; return its id."""
    reply = await upload(who, "contacts", "name,email\nRui,rui@example.com\n", "?hold=true")
    assert reply.status == 202, reply.text
    return str(reply.headers["Location"].rpartition("/")[2])


async def test_lines_that_come_after_their_page_was_read_go_as_well(
    api: RestApi, ana: Person
) -> None:
    """In an import that was searched, and in another one."""
    contact_id = await made(ana, "contacts", name=NAME, email=EMAIL)
    await made(ana, "tasks", title=NAME, contactId=contact_id)
    first = await waiting(ana)
    erasure_id = await ask(ana, contact_id)
    late = False
    async for _ in units(api.db, erasure_id):
        # The lines were searched; the task was not, so the contact is still there.
        if (await now(api.db, erasure_id)).stage == "records" and not late:
            late = True
            await api.db.write(add_lines, first, 50, [[NAME, EMAIL]])
            second = await upload(ana, "contacts", f"name,email\n{NAME},{EMAIL}\n")
            assert second.status == 202
    assert late
    assert (await now(api.db, erasure_id)).erased["importLines"] == 2
    found = await api.db.read(rows, "select cells from import_lines")
    assert all(EMAIL not in row["cells"] for row in found)


def outcome(text: str) -> str:
    return json.dumps([201, {}, json.dumps({"id": "1" * 24, "name": text})], ensure_ascii=False)


async def keep(tx: Tx, owner_id: str, stored: dict[str, str], ago: int = 0) -> None:
    for key, text in stored.items():
        await tx.run(KEEP, owner_id, key, b"", text, tx.now - ago)


async def test_responses_are_searched_once_in_pages_of_bytes_and_none_escapes(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that is stored, by a key that was passed, while the others are searched."""
    monkeypatch.setattr(page_sizes, "BYTES", PAGE)
    stored = {
        f"k{number:03}": outcome(("x" * 3_000 if number > 200 else "") + ("zoe\\" * (number % 2)))
        for number in range(300)
    }
    named = {"k050": outcome(f'Said "{NAME.upper()}"'), "k250": outcome("Maria\u0301 Quux")}
    hour = 3_600_000_000
    await api.db.write(keep, ana.user_id, stored | named | {f"z {EMAIL}": outcome("x")}, hour)
    erasure_id = await api.db.write(begun, ana.user_id, Whom(names=(NAME,), emails=(EMAIL,)))
    late = False
    with counted(api.db, monkeypatch) as done:
        async for erasure in units(api.db, erasure_id):
            if erasure.stage == "responses" and not late and "k0" in erasure.place:
                late = True
                await api.db.write(keep, ana.user_id, {"a": outcome(NAME)})
    assert late
    size = sum(map(len, (stored | named).values()))
    pages = [one for one in done if one.kind == "scan"]
    assert max(one.bytes for one in pages) < PAGE + 10_000
    assert size < sum(one.bytes for one in pages) < 1.2 * size
    assert max(one.bytes for one in done if one.kind == "write") < PAGE / 2
    assert (await now(api.db, erasure_id)).erased["storedResponses"] == 4
    found = await api.db.read(rows, "select key, outcome from idempotency")
    assert len(found) == 301
    short = {row["key"] for row in found if len(json.loads(json.loads(row["outcome"])[2])) == 1}
    assert short == {"a", "k050", "k250"}


async def test_responses_with_other_addresses_that_end_or_begin_alike_stay(
    api: RestApi, ana: Person
) -> None:
    others = ("jo" + EMAIL, f"x.{EMAIL}", f"{EMAIL}.br", f"é{EMAIL}", f"x%2B{EMAIL}")
    stored = {f"k {one}": outcome(f'Said "{one}", <{one}>, {one}.') for one in others}
    named = {"n1": outcome(f"<{EMAIL.upper()}>."), "n2": outcome(f"x={EMAIL}")}
    # The response tells whose a key is, in which clients join an address to other words.
    stored |= {f"tasks-5-{EMAIL}": outcome("x"), f"{EMAIL}-2": outcome("x")}
    keys = (f"to={EMAIL}", f"tasks-6-{EMAIL}", f"{EMAIL}-3.", f"a_{EMAIL}--2026-01-01")
    gone = {key: outcome(f"To {EMAIL}") for key in keys}
    await api.db.write(keep, ana.user_id, stored | named | gone)
    erasure_id = await api.db.write(begun, ana.user_id, Whom(emails=(EMAIL,)))
    async for _ in units(api.db, erasure_id):
        pass
    found = await api.db.read(rows, "select key, outcome from idempotency")
    left = {row["key"]: row["outcome"] for row in found}
    assert {key: left.pop(key) for key in stored} == stored
    assert {*left} == {*named}
    assert all(EMAIL not in text.lower() for text in left.values())


async def test_a_response_that_was_stored_again_meanwhile_is_not_overwritten(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    erasure_id = await api.db.write(begun, ana.user_id, Whom(names=(NAME,)))
    await api.db.write(keep, ana.user_id, {"k": outcome(NAME)}, 7)
    real, replaced = api.db.scan, 0

    async def scan(*args: Any) -> Any:
        """Another response replaces the one of the first page."""
        nonlocal replaced
        page = await real(*args)
        if not replaced:
            replaced = len(page)
            await api.db.write(rows, "delete from idempotency returning key")
            await api.db.write(keep, ana.user_id, {"k": outcome("another")})
        return page

    monkeypatch.setattr(api.db, "scan", scan)
    async for _ in units(api.db, erasure_id):
        pass
    assert replaced == 1
    [left] = await api.db.read(rows, "select outcome from idempotency")
    assert "another" in left["outcome"]


async def test_erasures_take_turns_by_how_often_they_were_put_aside(
    api: RestApi, ana: Person, bia: Person
) -> None:
    first, second = sorted([await api.db.write(begun, ana.user_id) for _ in range(2)])
    other = await api.db.write(begun, bia.user_id)
    assert await api.db.read(person_erasures.work, set()) == sorted([first, other])
    assert await api.db.write(person_erasures.put_aside, first)
    assert await api.db.read(person_erasures.work, set()) == sorted([second, other])
    assert await api.db.read(person_erasures.work, {second}) == [other, first]
    while await api.db.write(person_erasures.put_aside, first):
        pass
    assert (await now(api.db, first)).part(50) == 1


def test_pages_of_long_rows_have_few() -> None:
    """SQLite reads a row to know its size, so it looks at few behind a page of long ones."""
    size = page_sizes.PageSize(rows=32, bytes=PAGE)
    for _ in range(9):
        size = size.after(size.rows, 10)
    assert size.rows == page_sizes.MOST
    assert size.after(2, PAGE).rows == page_sizes.FEWEST
    assert size.after(2, 10).rows == page_sizes.MOST

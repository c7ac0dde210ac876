"""Digests over HTTP: a receiver finds what differs in its copy, and nothing else."""

from __future__ import annotations

import hashlib
import random
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from gateway.domain.catalogue import RESOURCES
from gateway.records import digests
from outbox.database.transaction import Row, Tx
from tests.support.crm_rows import add_contacts
from tests.support.rest import Person, RestApi
from tests.support.stocked import stock
from tests.support.tables import in_turn

EMPTY = hashlib.sha256(b"").hexdigest()
Copy = dict[str, int]


class Copied:
    """The copy of a receiver: versions by id."""

    def __init__(self, versions: Mapping[str, int]) -> None:
        self.versions = versions
        self.ids = sorted(versions)

    def within(self, part: Mapping[str, Any]) -> list[str]:
        """Return the ids of a part, in their order."""
        end = bisect_left(self.ids, part["to"]) if "to" in part else len(self.ids)
        return self.ids[bisect_left(self.ids, part["from"]) : end]

    def equals(self, part: Mapping[str, Any]) -> bool:
        """Return whether the part is the same here."""
        ids = self.within(part)
        lines = "".join(f"{one}:{self.versions[one]}\n" for one in ids)
        digest = hashlib.sha256(lines.encode()).hexdigest()
        return (part["count"], part["digest"]) == (len(ids), digest)


def differing(
    parts: Iterable[Mapping[str, Any]], copy: Mapping[str, int]
) -> list[Mapping[str, Any]]:
    copied = Copied(copy)
    return [part for part in parts if not copied.equals(part)]


def joined(parts: Sequence[Mapping[str, Any]], start: str, end: str | None) -> bool:
    """Return whether the parts cover the range without a hole."""
    ends = [part.get("to") for part in parts]
    return [part["from"] for part in parts] == [start, *ends[:-1]] and ends[-1] == end


async def versions(tx: Tx, table: str, owner_id: str) -> Copy:
    rows: Sequence[Row] = await tx.all(
        f"select id, version from {table} where owner_id = $1", owner_id
    )
    return {row["id"]: row["version"] for row in rows}


@pytest.mark.slow
async def test_the_parts_are_those_of_an_equal_copy(api: RestApi, ana: Person, bia: Person) -> None:
    await stock(api.db, ana.user_id, 5)
    await stock(api.db, bia.user_id, 3, first=5)
    for resource in RESOURCES:
        copy = await api.db.read(versions, resource.table, ana.user_id)
        path = f"/api/digest/{resource.plural}"
        for wanted in (1, 2, 3, 16):
            body = (await ana.get(f"{path}?parts={wanted}")).body
            assert "next" not in body
            assert joined(body["parts"], digests.FIRST, None)
            assert len(body["parts"]) <= wanted
            assert sum(part["count"] for part in body["parts"]) == len(copy) == 5
            assert differing(body["parts"], copy) == []
            named = [part[end] for part in body["parts"] for end in ("first", "last")]
            assert (named[0], named[-1]) == (min(copy), max(copy))


async def test_the_version_is_that_of_the_etag(ana: Person) -> None:
    made = (await ana.post("/api/contacts", {"name": "Ana"})).body["id"]
    changed = await ana.put(f"/api/contacts/{made}", {"name": "Ana Lima"})
    copy = {made: int(changed.headers["ETag"].strip('"').partition("-")[0])}
    [part] = (await ana.get("/api/digest/contacts")).body["parts"]
    assert (part["count"], differing([part], copy)) == (1, [])
    await ana.delete(f"/api/contacts/{made}")
    [part] = (await ana.get("/api/digest/contacts")).body["parts"]
    assert part == {"from": digests.FIRST, "count": 0, "digest": EMPTY}


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(5_000, id="small"),
        pytest.param(1_000_000, id="large", marks=(pytest.mark.proof, pytest.mark.timeout(900))),
    ],
)
async def test_ten_wrong_rows_among_many_are_found_with_few_requests(
    api: RestApi, ana: Person, count: int
) -> None:
    """R27: ten among a million with at most twenty digests."""
    await _stock(api, ana, count)
    right = await api.db.read(versions, "contacts", ana.user_id)
    chosen = random.Random(7).sample(sorted(right), 10)
    wrong = dict(right)
    for one in chosen[:4]:
        wrong[one] += 1
    for one in chosen[4:7]:
        del wrong[one]
    extra = [f"{one[:12]}{number:012x}" for number, one in enumerate(chosen[7:])]
    wrong |= dict.fromkeys(extra, 1)
    copied, found, requests = Copied(wrong), set[str](), 0
    ranges: list[tuple[str, str | None]] = [(digests.FIRST, None)]
    while ranges:
        start, end = ranges.pop()
        query = f"parts=1024&from={start}" + (f"&to={end}" if end else "")
        requests += 1
        parts = (await ana.get(f"/api/digest/contacts?{query}")).body["parts"]
        assert joined(parts, start, end)
        for part in parts:
            if copied.equals(part):
                continue
            if part["count"] > 1:
                ranges.append((part["from"], part.get("to")))
                continue
            here = {*copied.within(part), *filter(None, [part.get("first")])}
            found |= {one for one in here if wrong.get(one) != right.get(one)}
    assert found == {*chosen[:7], *extra}
    assert requests <= 11


async def _stock(api: RestApi, who: Person, count: int) -> None:
    """Add contacts in many transactions, so that their times differ."""
    each = min(count // 10, 1_000)
    for _ in range(count // each):
        await api.db.write(add_contacts, who.user_id, each, "0" * 24)


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        (1, [[38, 38, 38, 36], [38, 38, 38, 36], [25] * 4]),
        (60, [[38, 38, 38, 6], [38, 38, 38, 6], [38, 38, 38, 6], [10] * 4]),
        (200, [[38, 38, 38, 38, 38, 10], [38, 38, 38, 38, 38, 10]]),
    ],
)
async def test_a_range_with_too_many_records_tells_where_to_go_on(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch, each: int, expected: object
) -> None:
    """A digest ends between two milliseconds: within one, ids are in no order of time."""

    async def unit(tx: Tx) -> None:
        await add_contacts(tx, ana.user_id, 400, "0" * 24)
        for number, row in enumerate(await tx.all("select id from contacts order by id")):
            milliseconds = 1_700_000_000_000 + number // each
            await tx.run(
                "update contacts set id = $2, created_at = $3 where id = $1",
                row["id"],
                f"{milliseconds:012x}{number * 7 % 400:012x}",
                milliseconds * 1000 + number % each,
            )

    await api.db.write(unit)
    copy = await api.db.read(versions, "contacts", ana.user_id)
    monkeypatch.setattr(digests, "MOST", 150)
    monkeypatch.setattr(digests, "PAGE", 37)
    start, counts = digests.FIRST, []
    while start:
        body = (await ana.get(f"/api/digest/contacts?from={start}&parts=4")).body
        assert joined(body["parts"], start, body.get("next"))
        assert differing(body["parts"], copy) == []
        counts.append([part["count"] for part in body["parts"]])
        start = body.get("next")
    assert counts == expected


@in_turn(
    ("query", "field"),
    [
        ("from=x", "from"), ("to=1", "to"), ("parts=0", "parts"), ("parts=1025", "parts"),
        ("parts=many", "parts"),
        ("parts=00000000164000", "parts"), (f"from={'2' * 24}&to={'2' * 24}", "to"),
    ],
)  # fmt: skip
async def test_a_wrong_range_is_refused(ana: Person, query: str, field: str) -> None:
    reply = await ana.get(f"/api/digest/contacts?{query}")
    assert (reply.status, reply.faults) == (400, {field: "invalid_parameter"})
    assert (await ana.get("/api/digest/nothings")).status == 404

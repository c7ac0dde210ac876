"""Takes a person out of the responses that are stored for repeated requests."""

from typing import Any

from msgspec import MsgspecError, json

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy.traces import SHORTEST
from outbox.database.transaction import Tx
from outbox.ids import is_id

PAGE = 500
"""Responses that one unit searches."""
MOST_IDS = 100
"""Ids that are searched for; a response about another record of the person has the email."""
_NEXT = """
select key, operation from idempotency where owner_id = $1 and (key, operation) > ($2, $3)
order by key, operation limit 1 offset $4
"""
_FOUND = """
select key, operation, outcome from idempotency
where owner_id = $1 and (key, operation) > ($2, $3)
  and ($4 = '' or (key, operation) <= ($4, $5)) and ({})
"""
_SHORTEN = """
update idempotency set outcome = $4 where owner_id = $1 and key = $2 and operation = $3
"""
_DELETE = "delete from idempotency where owner_id = $1 and key = $2 and operation = $3"
_WITHIN = """/*sqlite instr(coalesce(outcome, '') || ' ' || key || ' ' || operation, {0}) > 0*/
 /*postgres strpos(coalesce(outcome, '') || ' ' || key || ' ' || operation, {0}) > 0*/"""


async def sweep(tx: Tx, owner_id: str, place: str, person: Person) -> tuple[str, int]:
    """Shorten a page of responses that hold the person to the id of their record.

    So a repeated request still makes nothing twice. A response whose key holds the person is
    deleted. Return where to go on, empty at the end, and how many were found.
    """
    after: list[str] = json.decode(place) if place else ["", ""]
    until = await tx.one(_NEXT, owner_id, *after, PAGE - 1)
    to = ["", ""] if until is None else [until["key"], until["operation"]]
    needles = _needles(person)
    count = 0
    if needles:
        clauses = " or ".join(_WITHIN.format(f"${6 + n}") for n in range(len(needles)))
        rows = await tx.all(_FOUND.format(clauses), owner_id, *after, *to, *needles)
        for row in rows:
            await _shorten(tx, owner_id, row, person)
        count = len(rows)
    return "" if until is None else json.encode(to).decode(), count


async def _shorten(tx: Tx, owner_id: str, row: Any, person: Person) -> None:
    where = (owner_id, row["key"], row["operation"])
    if any(text in row["key"] for text in _texts(person) if len(text) >= SHORTEST):
        await tx.run(_DELETE, *where)
        return
    if is_id(row["outcome"] or ""):
        # Of an item of a batch: it holds no more than the id.
        return
    try:
        status, headers, body = json.decode(row["outcome"], type=tuple[int, dict[str, str], str])
        bare = _bare(json.decode(body))
    except (MsgspecError, KeyError, TypeError):
        await tx.run(_DELETE, *where)
        return
    kept = (status, headers, json.encode(bare).decode())
    await tx.run(_SHORTEN, *where, json.encode(kept).decode())


def _bare(whole: Any) -> Any:
    """Return the ids of a response: of its record, or of each item of a batch."""
    if "results" in whole:
        shown = ("index", "status", "id", "code")
        return {"results": [{k: one[k] for k in shown if k in one} for one in whole["results"]]}
    return {"id": whole["id"]}


def _texts(person: Person) -> list[str]:
    return [*person.emails, *person.aliases, *person.names, *person.phones]


def _needles(person: Person) -> list[str]:
    """Return what a response about the person holds: ids, and texts as they stand in its JSON."""
    texts = [
        _inside(_inside(text)) for text in _texts(person)
        if len(text) >= SHORTEST
    ]  # fmt: skip
    return list(dict.fromkeys([*person.ids[:MOST_IDS], *texts]))


def _inside(text: str) -> str:
    """Return text as it stands in a JSON string."""
    return json.encode(text).decode()[1:-1]

"""Knows which record of an owner an import made from a record of another account.

A file that Carteiro exported has the ids of that account. The next files name the same records by
them, and the same file again finds what it made.
"""

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from gateway.records.resource import Resource
from outbox.database.sql import items
from outbox.database.transaction import Insert, Tx
from outbox.ids import is_id

Take = Callable[[str], str]
_NOTE = Insert(
    "imported_ids",
    ("owner_id", "origin_id", "record_id"),
    "on conflict (owner_id, origin_id) do update set record_id = excluded.record_id",
    referred=False,
)
_KNOWN = """
select origin_id, record_id from imported_ids
where owner_id = $1 and origin_id
/*sqlite in (select value from json_each($2))*/
/*postgres = any (array(select json_array_elements_text(cast($2 as json))))*/
"""
_FORGET = """
delete from imported_ids where owner_id = $1 and record_id = $2 returning origin_id
"""
_LINES, _PRODUCT = "items", "productId"


async def known(tx: Tx, owner_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Return the owner's record of each of these ids that an import has seen."""
    asked = sorted({normal(one) for one in ids if is_id(normal(one))})
    if not asked:
        return {}
    rows = await tx.all(_KNOWN, owner_id, items(asked))
    return {row["origin_id"]: row["record_id"] for row in rows}


def note(
    tx: Tx, owner_id: str, origins: MutableMapping[str, str], origin_id: str, record_id: str
) -> None:
    """Note that the record was made from the one with the id `origin_id`, which a line has."""
    origin = normal(origin_id)
    if is_id(origin) and origin != record_id and origins.get(origin) != record_id:
        origins[origin] = record_id
        tx.later(_NOTE, (owner_id, origin, record_id))


async def forget(tx: Tx, owner_id: str, record_id: str) -> Sequence[str]:
    """Forget where a record that is erased came from; return the ids that it had there."""
    return [row["origin_id"] for row in await tx.all(_FORGET, owner_id, record_id)]


def named(resource: Resource, sent: Mapping[str, Any]) -> list[str]:
    """Return the ids of other records in the values of a line."""
    ids: list[str] = []

    def take(record_id: str) -> str:
        ids.append(record_id)
        return record_id

    _each(resource, sent, take)
    return ids


def translated(
    resource: Resource, sent: Mapping[str, Any], origins: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the values of a line with the owner's own records in place of their origins."""
    if not origins:
        return sent
    return _each(resource, sent, lambda one: origins.get(normal(one), one))


def normal(record_id: str) -> str:
    """Return an id as it is stored."""
    return record_id.strip().lower()


def _each(resource: Resource, sent: Mapping[str, Any], take: Take) -> Mapping[str, Any]:
    """Return `sent` with what `take` returns for each id in it."""
    replaced: dict[str, Any] = {}
    for field, _ in resource.references:
        value = sent.get(field.name)
        if isinstance(value, str):
            replaced[field.name] = take(value)
        elif isinstance(value, list):
            replaced[field.name] = [take(item) if isinstance(item, str) else item for item in value]
    lines = sent.get(_LINES)
    if isinstance(lines, list):
        replaced[_LINES] = [_line(line, take) for line in lines]
    return {**sent, **replaced}


def _line(line: Any, take: Take) -> Any:
    if isinstance(line, dict) and isinstance(line.get(_PRODUCT), str):
        return {**line, _PRODUCT: take(line[_PRODUCT])}
    return line

"""Finds the records that a reader names in a form: by id, or by the name that the record has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.console.records.inputs import Input
from gateway.console.records.reference_input import Picked
from gateway.console.records.references import name_of
from gateway.domain.catalogue import BY_TABLE
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.query import Query
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.searching import words_of
from gateway.records.values.folding import fold
from outbox.database.transaction import Tx

MOST = 10
"""Records that are offered for a name."""
LOOKED_AT = 100
"""Newest records that a name is looked for in, where the resource has no search."""
DETAILS = ("email", "cnpj", "hostname", "sku", "stage", "status", "phone")
"""Fields that tell records of the same name apart, in the order in which they are tried."""


@dataclass(frozen=True, slots=True)
class Match:
    """A record that a name may mean."""

    id: str
    name: str
    detail: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What was typed with the ids that it means, and the matches of each name that is not clear.

    The matches are by the name of the input, `contactIds[0]` in a list; none: nobody has the name.
    """

    typed: Mapping[str, Any]
    unclear: Mapping[str, Sequence[Match]]


async def resolve(
    tx: Tx, actor: Actor, resource: Resource, inputs: Sequence[Input], typed: Mapping[str, Any]
) -> Resolved:
    """Return what was typed with the ids of the records that it names."""
    done, unclear = dict(typed), dict[str, Sequence[Match]]()
    for one in inputs:
        if one.kind not in ("record", "records"):
            continue
        target = target_of(resource, one, typed)
        if target is None:
            # The kind is invalid, and its own fault reports that.
            continue
        single = one.kind == "record"
        each: list[Picked] = [typed[one.name]] if single else list(typed[one.name])
        for place, picked in enumerate(each):
            if not picked.text or picked.id:
                continue
            found = await matches(tx, actor, target, picked.text)
            same = [match for match in found if fold(match.name) == fold(picked.text)]
            if not same and len(found) == 1 and _begins(found[0], picked.text):
                same = found
            if len(same) == 1:
                each[place] = Picked(same[0].name, same[0].id)
            else:
                unclear[one.name if single else f"{one.name}[{place}]"] = same or found
        done[one.name] = each[0] if single else each
    return Resolved(done, unclear)


async def matches(tx: Tx, actor: Actor, target: Resource, text: str) -> list[Match]:
    """Return up to MOST records whose name has these words, the newest first."""
    wanted, words = fold(text), words_of(text)
    heading = target.heading
    # PostgreSQL takes no text with a NUL, which no name has.
    if not words or not heading or "\0" in text:
        return []
    if heading in target.search:
        query = Query(limit=LOOKED_AT, search=text, counted=False)
    else:
        query = Query(limit=LOOKED_AT, counted=False)
    page = await actions.page(tx, actor, target, query)
    named = [one for one in page.records if all(word in fold(name_of(one)) for word in words)]
    # Whoever has exactly this name is offered first.
    named.sort(key=lambda one: fold(name_of(one)) != wanted)
    return [Match(one.id, name_of(one), _detail(one)) for one in named[:MOST]]


def _begins(match: Match, text: str) -> bool:
    """Return whether each word of a text begins one of the name: `Sá` means Ana Sá, not Rosário."""
    named = words_of(match.name)
    return all(any(one.startswith(word) for one in named) for word in words_of(text))


def options(found: Sequence[Match]) -> list[tuple[str, str]]:
    """Return the text and the detail of each suggestion; an id tells equal names apart."""
    names = [match.name for match in found]
    return [
        (one.name if names.count(one.name) == 1 else f"{one.name} · {one.id}", one.detail)
        for one in found
    ]


def target_of(resource: Resource, one: Input, typed: Mapping[str, Any]) -> Resource | None:
    """Return the resource whose records an input takes; None when another input does not say."""
    table = one.to
    if one.by:
        reference = resource.named[one.name].reference
        tables = reference.tables if reference is not None else None
        table = (tables or {}).get(str(typed.get(one.by, "")), "")
    return BY_TABLE.get(table)


def _detail(record: Record) -> str:
    for name in DETAILS:
        if name in record.resource.named and record.shown(name):
            return str(record.shown(name))
    return ""

"""Finds the records that a reader names in a form: by id, name, e-mail, phone or document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.console.records.inputs import Input
from gateway.console.records.references import name_of
from gateway.console.records.typed_values import Picked
from gateway.domain.catalogue import BY_TABLE
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.query import Query
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.searching import words_of
from gateway.records.values.folding import fold
from gateway.records.values.masks import masked
from outbox.database.transaction import Tx

MOST = 10
"""Records that are offered for a name."""
LOOKED_AT = 100
"""Newest records that a name is looked for in, where the resource has no search."""
DETAILS = ("email", "cnpj", "hostname", "sku", "stage", "status", "phone")
"""Fields that tell records of the same name apart, in the order in which they are tried."""


FEWEST_DIGITS = 8


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
    for form_input in inputs:
        if form_input.kind not in ("record", "records"):
            continue
        target = target_of(resource, form_input, typed)
        if target is None:
            # The kind is invalid, and its own fault reports that.
            continue
        single = form_input.kind == "record"
        each: list[Picked] = [typed[form_input.name]] if single else list(typed[form_input.name])
        for place, picked in enumerate(each):
            if not picked.text or picked.id:
                continue
            candidates = await matches(tx, actor, target, picked.text)
            same = [match for match in candidates if fold(match.name) == fold(picked.text)]
            if not same and len(candidates) == 1 and _means(candidates[0], picked.text):
                same = candidates
            if len(same) == 1:
                each[place] = Picked(same[0].name, same[0].id)
            else:
                unclear[form_input.name if single else f"{form_input.name}[{place}]"] = (
                    same or candidates
                )
        done[form_input.name] = each[0] if single else each
    return Resolved(done, unclear)


async def matches(tx: Tx, actor: Actor, target: Resource, text: str) -> list[Match]:
    """Return up to MOST records that have these words, those with all of them in the name first.

    A contact is also found by its e-mail and its phone.
    """
    wanted, words = fold(text), words_of(text)
    heading = target.heading
    # PostgreSQL takes no text with a NUL, which no name has.
    if not words or not heading or "\0" in text:
        return []
    searched = heading in target.search
    query = Query(
        limit=LOOKED_AT, search=text if searched else "", anywhere=searched, counted=False
    )
    page = await actions.page(tx, actor, target, query)
    names = {one.id: fold(name_of(one)) for one in page.records}
    named = {key: all(word in name for word in words) for key, name in names.items()}
    records = [one for one in page.records if searched or named[one.id]]
    # Whoever has exactly this name is offered first.
    records.sort(key=lambda one: (names[one.id] != wanted, not named[one.id]))
    return [Match(one.id, name_of(one), _detail(one, text)) for one in records[:MOST]]


def _means(match: Match, text: str) -> bool:
    """Return whether a text means the only record that was found by it.

    It is a phone, a document, the e-mail, or each of its words begins one of the name: `Sá` means
    Ana Sá, not Rosário.
    """
    if _is_number(text) or fold(match.detail) == fold(text.strip()):
        return True
    named = words_of(match.name)
    return all(any(one.startswith(word) for one in named) for word in words_of(text))


def _is_number(text: str) -> bool:
    """Return whether a text is a phone or a document that can be only one."""
    digits = sum(sign.isdigit() for sign in text)
    return digits >= FEWEST_DIGITS and not any(sign.isalpha() for sign in text)


def options(offered: Sequence[Match]) -> list[tuple[str, str]]:
    """Return the text and the detail of each suggestion; an id tells equal names apart."""
    names = [match.name for match in offered]
    return [
        (one.name if names.count(one.name) == 1 else f"{one.name} · {one.id}", one.detail)
        for one in offered
    ]


def target_of(resource: Resource, form_input: Input, typed: Mapping[str, Any]) -> Resource | None:
    """Return the resource whose records an input takes; None when another input does not say."""
    table = form_input.to
    if form_input.by:
        reference = resource.named[form_input.name].reference
        tables = reference.tables if reference is not None else None
        table = (tables or {}).get(str(typed.get(form_input.by, "")), "")
    return BY_TABLE.get(table)


def _detail(record: Record, text: str) -> str:
    names = ("phone", *DETAILS) if _is_number(text) else DETAILS
    for name in names:
        if name in record.resource.named and record.shown(name):
            return str(masked(name, record.shown(name)))
    return ""

"""Decides which field each column of a file fills.

A column has a target: a field, or a part from which fields are made, such as a first name or the
name of a company.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from gateway.domain.imports import headings as known
from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal
from gateway.records.resource import Resource
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.texts import CODES
from gateway.texts import of as texts_in

ID = "id"
_SHOWN = 12
MADE_OF: Mapping[str, str] = {
    "firstName": "name", "middleName": "name", "lastName": "name", "namePrefix": "name",
    "nameSuffix": "name", "option": "name", "company": "companyId", "noteLine": "notes",
    "label": "notes", "salePrice": "price", "inStock": "stock", "stockTracker": "stock",
    "weightKg": "weightGrams", "weightLb": "weightGrams", "weightOz": "weightGrams",
    "imageAlt": "images", "variantImage": "images", "kind": "requiresShipping",
    "parent": "categories", "employees": "size",
}  # fmt: skip
"""The field that each part goes into."""
MAKES: Mapping[str, str] = {"company": "companies"}
"""The records that each part finds by their names, and makes where they are not there."""


@cache
def parts(resource: Resource) -> Sequence[str]:
    """Return the parts of fields that a column can fill."""
    return [
        name
        for name in known.of(resource.plural).targets
        if MADE_OF.get(name) in resource.creatable and name not in resource.creatable
    ]


def importable(resource: Resource) -> Sequence[str]:
    """Return what a column can fill: fields and parts of them; `id` finds a record."""
    return (ID, *resource.importable, *parts(resource))


def field_of(target: str) -> str:
    """Return the field that a target goes into."""
    return MADE_OF.get(target, target)


def parse(text: str) -> Mapping[str, str]:
    """Return heading → target of `{"Nome": "name"}`, or of `Nome:name,E-mail:email`.

    Raises validation_error.
    """
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    named: dict[str, str] = {}
    for part in text.split(","):
        heading, colon, target = part.rpartition(":")
        if not colon or not heading.strip() or not target.strip():
            raise _refused(
                'Write the columns as JSON, such as {"Nome": "name"}, or as Heading:field, '
                "separated by commas."
            )
        named[heading.strip()] = target.strip()
    return named


def _parse_json(text: str) -> Mapping[str, str]:
    try:
        named = decode(text.encode(errors="replace"))
    except InvalidJson as error:
        raise _refused(f"This is not JSON: {error}") from None
    if not named or not all(isinstance(one, str) and one.strip() for one in named.values()):
        raise _refused('Send the field of each heading, such as {"Nome": "name"}.')
    return {heading.strip(): target.strip() for heading, target in named.items()}


def parse_each(texts: Sequence[str]) -> Mapping[str, str]:
    """Return heading → target of `Nome=name`, one each. Raises validation_error."""
    named: dict[str, str] = {}
    for text in texts:
        heading, equals, target = text.rpartition("=")
        if not equals or not heading.strip() or not target.strip():
            raise _refused(f"Write a column as Heading=field, not {text[:64]}.")
        named[heading.strip()] = target.strip()
    return named


def fields_of(
    resource: Resource, headings: Sequence[str], named: Mapping[str, str] | None = None
) -> list[str]:
    """Return the target of each heading, empty for a column that is left out.

    `named` maps headings to targets, and leaves all other columns out; without it the table of
    headings decides. Raises validation_error.
    """
    if named is None:
        targets = guess(resource, headings)
    else:
        by_heading = _must_fit(resource, named, headings)
        targets = [by_heading.get(heading.casefold(), "") for heading in headings]
    must_do(resource, targets)
    return targets


def guess(resource: Resource, headings: Sequence[str]) -> list[str]:
    """Return the target that each heading names, empty for an unknown one."""
    targets = [""] * len(headings)
    keys = [known.key(heading) for heading in headings]
    own = {name.casefold(): name for name in (ID, *resource.importable)}
    _take(targets, ((place, own.get(h.strip().casefold(), "")) for place, h in enumerate(headings)))
    table = known.of(resource.plural)
    allowed = set(importable(resource))
    for target, places in table.targets.items():
        if target in allowed:
            claims = [
                place for place, name in enumerate(keys) if not targets[place] and name in places
            ]
            claims.sort(key=lambda place: (places[keys[place]], place))  # at once
            _take(targets, ((place, target) for place in claims))
    labels = _labels(resource)
    _take(targets, ((place, labels.get(name, "")) for place, name in enumerate(keys)))
    for target, lists in table.fallback.items():
        listed = next((group for group in lists if not group.isdisjoint(keys)), frozenset())
        if target not in targets:
            for place, name in enumerate(keys):
                if name in listed and targets[place] in ("", "kind"):
                    targets[place] = target
    for stated, instead in table.beside.items():
        for target, places in instead.items():
            if stated in targets and target not in targets:
                these = [place for place, name in enumerate(keys) if name in places]
                for place in these[:1]:
                    targets[place] = target
    for place, first in known.repeated(headings).items():
        if _has_room(resource, targets[first]):
            targets[place] = targets[first]
    return targets


def _take(found: list[str], claims: Iterator[tuple[int, str]]) -> None:
    """Give columns without a target the one that they claim, unless another column has it."""
    for place, target in claims:
        if target and not found[place] and (target not in found or target in known.several()):
            found[place] = target


@cache
def _labels(resource: Resource) -> Mapping[str, str]:
    """Return the fields by their labels in the console, in each language."""
    return {
        known.key(texts.get(f"field.{name}", "")): name
        for texts in map(texts_in, CODES)
        for name in reversed(list(resource.importable))
        if f"field.{name}" in texts
    }


def left_out(resource: Resource, headings: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Return the headings of the columns that are not imported and say something of their own."""
    ignored = known.of(resource.plural).ignored
    # What the server itself gives a record stands in its own exports.
    ours = {*resource.forms, *(derived.name for derived in resource.derived)}
    return [
        heading
        for heading, target in zip(headings, targets, strict=False)
        if heading and not target and heading not in ours and known.key(heading) not in ignored
    ]


def heading_of(headings: Sequence[str], found: Sequence[str], field: str) -> str:
    """Return the heading of the first column that fills a field, or a part of it."""
    pairs = list(zip(headings, found, strict=False))
    own = next((heading for heading, target in pairs if target == field), None)
    if own is not None:
        return own
    return next((heading for heading, target in pairs if field_of(target) == field), "")


def _must_fit(
    resource: Resource, named: Mapping[str, str], headings: Sequence[str]
) -> Mapping[str, str]:
    targets = importable(resource)
    there = {heading.casefold() for heading in headings}
    if len({heading.casefold() for heading in named}) < len(named):
        raise _refused("A heading stands twice in columns; name each once.")
    for heading, target in named.items():
        if heading.casefold() not in there:
            some = ", ".join(one[:64] for one in headings[:_SHOWN] if one)
            more = f" and {len(headings) - _SHOWN} more" if len(headings) > _SHOWN else ""
            raise _refused(f"The file has no column {heading[:64]}; it has {some}{more}.")
        if target not in targets:
            raise _refused(f"There is no field {target[:64]}; there are {', '.join(targets)}.")
    _must_go_together(resource, list(named.values()))
    return {heading.casefold(): target for heading, target in named.items()}


def must_do(resource: Resource, targets: Sequence[str]) -> None:
    """Raise validation_error when no line could be imported with these targets of the columns."""
    if not any(targets):
        raise _refused(
            "No heading is the name of a field; rename them, or send columns=Heading:field. "
            f"Fields: {', '.join(importable(resource))}."
        )
    _must_go_together(resource, [target for target in targets if target])
    filled = set(map(field_of, filter(None, targets)))
    lacking = [name for name in resource.required if name not in filled]
    if lacking and {ID, resource.key}.isdisjoint(set(targets) - {""}):
        raise _refused(f"No column fills {', '.join(lacking)}, which a new record needs.")


def _must_go_together(resource: Resource, found: Sequence[str]) -> None:
    """Raise validation_error when two columns fill one field that has no place for both."""
    for target in found:
        if found.count(target) > 1 and not _has_room(resource, target):
            raise _refused(f"Two columns fill the same field, {target}; name one of them.")


def _has_room(resource: Resource, target: str) -> bool:
    # What the first column does not say goes into the notes.
    return target in known.several() or (target not in ("", ID) and "notes" in resource.creatable)


def _refused(message: str) -> Refusal:
    return refusal([Fault("columns", "invalid_parameter", message)])

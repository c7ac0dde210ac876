"""Decides which field each column of a file fills."""

from collections.abc import Mapping, Sequence

from gateway.records.draft import refusal
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Resource

ID = "id"
_SHOWN = 12
USUAL = {
    "nome": "name", "nome completo": "name", "full name": "name", "razão social": "name",
    "produto": "name", "e-mail": "email", "mail": "email", "telefone": "phone", "fone": "phone",
    "celular": "phone", "whatsapp": "phone", "cargo": "position", "observações": "notes",
    "observação": "notes", "notas": "notes", "etiquetas": "tags", "marcadores": "tags",
    "site": "website", "setor": "industry", "segmento": "industry", "porte": "size",
    "preço": "price", "valor": "price", "descrição": "description", "código": "sku",
    "estoque": "stock", "peso": "weightGrams", "categorias": "categories",
}  # fmt: skip
"""What spreadsheets call fields."""


def importable(resource: Resource) -> Sequence[str]:
    """Return the names of the fields that a column can fill; `id` finds a record."""
    return (ID, *resource.importable)


def parse(text: str) -> Mapping[str, str]:
    """Return heading → field of `Nome:name,E-mail:email`. Raises validation_error."""
    named: dict[str, str] = {}
    for part in text.split(","):
        heading, colon, field = part.rpartition(":")
        if not colon or not heading.strip() or not field.strip():
            raise _refused("Write each column as Heading:field, separated by commas.")
        named[heading.strip()] = field.strip()
    return named


def fields_of(
    resource: Resource, headings: Sequence[str], named: Mapping[str, str] | None = None
) -> list[str]:
    """Return the field of each heading, empty for a column that is left out.

    `named` maps headings to fields, and leaves all other columns out; without it a heading is the
    name of its field, in any case. Raises validation_error.
    """
    fields = importable(resource)
    if named is None:
        by_name = {name.casefold(): name for name in fields}
        found = [by_name.get(heading.casefold(), "") for heading in headings]
    else:
        by_heading = _must_fit(named, headings, fields)
        found = [by_heading.get(heading.casefold(), "") for heading in headings]
    must_do(resource, found)
    return found


def guess(
    resource: Resource, headings: Sequence[str], labels: Mapping[str, str] | None = None
) -> list[str]:
    """Return the likely field of each heading, each once; `labels` has folded text → field."""
    names = {**USUAL, **(labels or {}), **{name.casefold(): name for name in importable(resource)}}
    taken: set[str] = {""}
    found = []
    for heading in headings:
        field = names.get(heading.strip().casefold(), "")
        found.append("" if field in taken or field not in importable(resource) else field)
        taken.add(field)
    return found


def _must_fit(
    named: Mapping[str, str], headings: Sequence[str], fields: Sequence[str]
) -> Mapping[str, str]:
    there = {heading.casefold() for heading in headings}
    for heading, field in named.items():
        if heading.casefold() not in there:
            some = ", ".join(one[:64] for one in headings[:_SHOWN] if one)
            raise _refused(f"The file has no column {heading[:64]}; it has {some}.")
        if field not in fields:
            raise _refused(f"There is no field {field[:64]}; there are {', '.join(fields)}.")
    if len(set(named.values())) < len(named):
        raise _refused("Two columns fill the same field; name one of them.")
    return {heading.casefold(): field for heading, field in named.items()}


def must_do(resource: Resource, found: Sequence[str]) -> None:
    """Raise validation_error when no line could be imported with these fields of the columns."""
    fields = importable(resource)
    if not any(found):
        raise _refused(
            "No heading is the name of a field; rename them, or send columns=Heading:field. "
            f"Fields: {', '.join(fields)}."
        )
    lacking = [name for name in resource.required if name not in found]
    finds = {ID, resource.key} - {""}
    if lacking and finds.isdisjoint(found):
        raise _refused(f"No column fills {', '.join(lacking)}, which a new record needs.")


def _refused(message: str) -> Refusal:
    return refusal([Fault("columns", "invalid_parameter", message)])

"""Gives each column of a table a width by the kind of its values, for the styles."""

from gateway.console.records.inputs import kind_of, plain
from gateway.records.resource import Resource
from gateway.records.values.schemas import INSTANT

_NAMED = {
    "email": "email",
    "phone": "phone",
    "phoneE164": "phone",
    "cnpj": "code",
    "document": "code",
}
_KINDS = {
    "money": "num", "number": "num", "choice": "word", "box": "word", "several": "chips",
    "lines": "chips",
}  # fmt: skip


def width_of(resource: Resource, name: str) -> str:
    """Return the width of a column: `email`, `phone`, `num`, `time`, `word`, `ref`, `text` …"""
    field = resource.named.get(name)
    if name in _NAMED:
        return _NAMED[name]
    if field is None:
        return "word" if any(one.name == name for one in resource.derived) else "time"
    schema = field.format.shown or field.format.schema
    if schema is INSTANT:
        return "time"
    if field.reference is not None:
        return "ref"
    return _KINDS.get(kind_of(plain(schema)), "text")

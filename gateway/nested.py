"""The formats of fields that hold lists and objects; they are kept as JSON text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw, json

from gateway import formats
from gateway.resource import Format, Wrong
from gateway.schemas import or_null
from gateway.strictjson import depth, dumps


def ids_of(noun: str, most: int = 100) -> Format:
    """A list of ids without repeats, kept as JSON text."""
    return _list(formats.id_of(noun), most)


def tags() -> Format:
    """Up to 50 short labels without repeats, kept as JSON text."""
    return _list(formats.title(64), 50)


def _list(item: Format, most: int) -> Format:
    def parse(value: Any) -> str:
        if not isinstance(value, list):
            raise Wrong("wrong_type", "Send an array.")
        kept = list(dict.fromkeys(items(item, value)))
        if len(kept) > most:
            raise Wrong("too_many", f"Send at most {most} different items.")
        return dumps(kept)

    schema = {"type": "array", "items": item.schema, "maxItems": most}
    shown = None if item.shown is None else {**schema, "items": item.shown}
    return Format(parse, schema, json.decode, shown)


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """A member of an object inside a list, by its JSON name."""

    name: str
    format: Format
    description: str
    required: bool = False


def objects(members: Sequence[Member], most: int, least: int = 0) -> Format:
    """A list of objects, kept as JSON text of their members' stored values."""
    item = object_of(members)

    def parse(value: Any) -> str:
        return dumps(several(item, value, most, least))

    return Format(parse, list_schema(item, most, least), json.decode)


def several(item: Format, value: Any, most: int, least: int = 0) -> list[Any]:
    """The stored form of each item of a list that must have `least` to `most` of them."""
    if not isinstance(value, list):
        raise Wrong("wrong_type", "Send an array.")
    if len(value) > most:
        raise Wrong("too_many", f"Send at most {most} items.")
    if len(value) < least:
        raise Wrong("too_few", f"Send at least {least} item{'s' * (least > 1)}.")
    return items(item, value)


def list_schema(item: Format, most: int, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": item.schema, "minItems": least, "maxItems": most}


def object_of(members: Sequence[Member]) -> Format:
    """An object: stored member values by name, without those that are not sent or null.

    Other members are ignored.
    """

    def parse(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Wrong("wrong_type", "Send an object.")
        kept: dict[str, Any] = {}
        wrongs: list[Wrong] = []
        for member in members:
            sent = value.get(member.name)
            if sent is None:
                if member.required:
                    wrongs.append(Wrong("required", f"Send {member.name}.", f".{member.name}"))
                continue
            try:
                kept[member.name] = member.format.parse(sent)
            except Wrong as wrong:
                wrongs.append(Wrong(wrong.code, wrong.message, f".{member.name}{wrong.at}"))
        if wrongs:
            first, *more = wrongs
            raise Wrong(first.code, first.message, first.at, more)
        return kept

    schema = {
        "type": "object",
        "properties": {
            m.name: {
                **(m.format.schema if m.required else or_null(m.format.schema)),
                "description": m.description,
            }
            for m in members
        },
        "required": [m.name for m in members if m.required],
    }  # fmt: skip
    return Format(parse, schema)


def items(item: Format, values: Sequence[Any]) -> list[Any]:
    """The stored form of each item. Raises Wrong with the first 20 faults and their places."""
    kept = []
    wrongs: list[Wrong] = []
    for position, value in enumerate(values):
        try:
            kept.append(item.parse(value))
        except Wrong as wrong:
            wrongs += [
                Wrong(w.code, w.message, f"[{position}]{w.at}") for w in (wrong, *wrong.more)
            ]
            if len(wrongs) >= 20:
                break
    if wrongs:
        first, *more = wrongs
        raise Wrong(first.code, first.message, first.at, more)
    return kept


def free_object(most_bytes: int = 16_384, most_depth: int = 8) -> Format:
    """Any JSON object within bounds, kept as its text and shown digit for digit."""

    def parse(value: Any) -> str:
        if not isinstance(value, dict):
            raise Wrong("wrong_type", "Send an object.")
        if depth(value) > most_depth:
            raise Wrong("too_deep", f"Nest at most {most_depth} levels.")
        kept = dumps(value)
        if len(kept.encode()) > most_bytes:
            raise Wrong("too_long", f"Send at most {most_bytes} bytes of JSON.")
        return kept

    # Raw, since an integer of any size is JSON.
    return Format(parse, {"type": "object", "additionalProperties": True}, _raw)


def _raw(kept: str) -> Raw:
    return Raw(kept.encode())

"""Defines the formats of objects and of lists of them, which are stored as JSON text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Raw
from msgspec.json import decode

from gateway.records.values.formats import Format, Wrong, composite, list_by, several, together
from gateway.records.values.schemas import or_null
from gateway.records.values.strictjson import depth, dumps


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """A member of an object inside a list, by its JSON name."""

    name: str
    format: Format
    description: str
    required: bool = False


def objects(members: Sequence[Member], most: int, least: int = 0) -> Format:
    """Return the format of a list of objects, stored as JSON text of stored values."""
    item = object_of(members)

    def parts(value: Any, from_json: bool) -> str:
        return dumps(several(item, value, from_json, most, least))

    schema = list_schema(item, most, least)
    return list_by(parts, schema, item)


def list_schema(item: Format, most: int, least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": item.schema, "minItems": least, "maxItems": most}


def object_of(members: Sequence[Member]) -> Format:
    """Return the format of an object: stored member values by name, without absent and null ones.

    It ignores other members.
    """

    def parts(value: Any, from_json: bool) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Wrong("wrong_type", "Send an object.")
        stored: dict[str, Any] = {}
        wrongs: list[Wrong] = []
        for member in members:
            sent = value.get(member.name)
            if sent is None:
                if member.required:
                    message = f"{member.name} is required."
                    wrongs.append(Wrong("required", message, f".{member.name}"))
                continue
            try:
                stored[member.name] = member.format.accept(sent, from_json=from_json)
            except Wrong as wrong:
                wrongs += wrong.beneath(f".{member.name}")
        if wrongs:
            raise together(wrongs)
        return stored

    shows = [(m.name, m.format.show) for m in members if m.format.show is not None]

    def show(stored: Mapping[str, Any]) -> dict[str, Any]:
        shown = dict(stored)
        for name, show_member in shows:
            if name in shown:
                shown[name] = show_member(shown[name])
        return shown

    required = [m.name for m in members if m.required]
    sent = {m.name: m.format.schema if m.required else or_null(m.format.schema) for m in members}
    shown = {m.name: m.format.shown or m.format.schema for m in members}

    def schema(properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        described = {m.name: {**properties[m.name], "description": m.description} for m in members}
        return {"type": "object", "properties": described, "required": required}

    return composite(parts, schema(sent), show if shows else None, schema(shown))


def object_text(members: Sequence[Member]) -> Format:
    """Return the format of an object, stored as JSON text of stored values."""
    inner = object_of(members)
    show = inner.show

    def parts(value: Any, from_json: bool) -> str:
        return dumps(inner.accept(value, from_json=from_json))

    def shown(text: str) -> Any:
        return decode(text) if show is None else show(decode(text))

    return composite(parts, inner.schema, shown, inner.shown, is_json=show is None)


def free_object(most_bytes: int = 16_384, most_depth: int = 8) -> Format:
    """Return the format of any JSON object within limits; its numbers keep every digit."""

    def check(value: Any) -> str:
        if not isinstance(value, dict):
            raise Wrong("wrong_type", "Send an object.")
        if depth(value) > most_depth:
            raise Wrong("too_deep", "Nest at most {most} levels.", most=most_depth)
        text = dumps(value)
        if len(text.encode()) > most_bytes:
            raise Wrong("too_long", "Send at most {most} bytes of JSON.", most=most_bytes)
        return text

    # Raw, because a JSON integer has any size.
    return Format(check, {"type": "object", "additionalProperties": True}, _raw)


def _raw(text: str) -> Raw:
    return Raw(text.encode())

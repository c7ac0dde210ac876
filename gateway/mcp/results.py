"""Renders what tools return: structured content with the same as text, and refusals as errors.

A refusal names the field, the allowed values and the nearest of them, so that a model can mend its
call; it is a result, because models do not see errors of the protocol.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from gateway.mcp.tool_arguments import nearest
from gateway.records.errors import Fault, Refusal

BYTES = 40_000
"""About how many bytes of records a result has: some 10,000 tokens."""
TEXT = 2_000
"""Characters of a text in a record that is too long for a result."""
MOST_FAULTS = 20
"""Faults that a result names; each takes time, and a model mends a few at once."""
Schema = Mapping[str, Any]


def done(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a call that succeeded."""
    text = msgspec.json.encode(content).decode()
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": content,
        "isError": False,
    }


def refused(
    refusal: Refusal, schema: Schema | None = None, sent: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the result of a refused call; `schema` is that of what was `sent`."""
    body: dict[str, Any] = {"error": refusal.message, "code": refusal.code}
    if refusal.faults:
        named = refusal.faults[:MOST_FAULTS]
        body["details"] = [_detail(fault, schema or {}, sent or {}) for fault in named]
    hidden = ("preference_applied", "rate_limit", "rate_limit_policy")
    body |= {name: value for name, value in refusal.facts.items() if name not in hidden}
    text = msgspec.json.encode(body).decode()
    return {"content": [{"type": "text", "text": text}], "isError": True}


def size_of(value: Any) -> int:
    """Return the bytes of a value as JSON."""
    return len(msgspec.json.encode(value))


def fitting(records: Sequence[Any]) -> int:
    """Return how many of the records fit into a result: at least one."""
    size = 0
    for count, record in enumerate(records):
        size += size_of(record)
        if size > BYTES:
            return max(count, 1)
    return len(records)


def shortened(record: Mapping[str, Any], at: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return a record with its long texts cut, and the names of what was cut."""
    cut: list[str] = []

    def short(value: Any, name: str) -> Any:
        if isinstance(value, str) and len(value) > TEXT:
            cut.append(name)
            return f"{value[:TEXT]}…"
        if isinstance(value, Mapping):
            return {key: short(its, f"{name}.{key}" if name else key) for key, its in value.items()}
        if isinstance(value, list):
            if size_of(value) > BYTES:
                cut.append(name)
                value = value[: fitting(value) // 2 or 1]
            return [short(its, f"{name}[{place}]") for place, its in enumerate(value)]
        return value

    return short(record, at), cut


def _detail(fault: Fault, schema: Schema, sent: Mapping[str, Any]) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "field": fault.field,
        "code": fault.code,
        "message": fault.message,
    }
    *_, last = steps = list(_steps(fault.field))
    value: Any = sent
    for step in steps[:-1]:
        schema = _within(schema, step)
        value = _item(value, step)
    if fault.code.startswith("unknown"):
        allowed = [name for choice in _choices(schema) for name in choice.get("properties", ())]
        value = last
    else:
        its = _choices(_within(schema, last))
        allowed = [
            text for choice in its for text in choice.get("enum", ()) if isinstance(text, str)
        ]
        value = _item(value, last)
    if allowed:
        detail["allowed"] = allowed
        near = nearest(value, allowed)
        if near is not None:
            detail["nearest"] = near
    return detail


def _steps(path: str) -> Iterator[str | int]:
    """Yield the steps of a field's name: `items[3].name` is items, 3, name."""
    for part in path.split("."):
        name, *places = part.split("[")
        yield name
        for place in places:
            digits = place.rstrip("]")
            yield int(digits) if digits.isdecimal() else digits


def _within(schema: Schema, step: str | int) -> Schema:
    for one in _choices(schema):
        inner = one.get("items") if isinstance(step, int) else one.get("properties", {}).get(step)
        if isinstance(inner, Mapping):
            return inner
    return {}


def _choices(schema: Schema) -> Sequence[Schema]:
    """Return the schemas of which a value has one: `anyOf` is a schema or null."""
    choices: Sequence[Schema] = schema.get("anyOf", (schema,))
    return choices


def _item(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    return value.get(step) if isinstance(value, Mapping) else None

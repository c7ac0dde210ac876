"""Checks the arguments of a call against the schema of its tool, and names what is nearest."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from gateway.records.errors import Fault
from gateway.records.record import refusal

NEAR = 0.6
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "boolean": (bool,), "object": (dict,), "array": (list,),
}  # fmt: skip
_WORDS: Mapping[str, str] = {
    "string": "a text", "integer": "a whole number", "boolean": "true or false",
    "object": "an object", "array": "a list of texts",
}  # fmt: skip


def check(schema: Mapping[str, Any], sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments without nulls. Raises validation_error with all faults."""
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    faults = [
        Fault(name, "required", f"{name} is required.")
        for name in schema.get("required", ())
        if sent.get(name) is None
    ]
    for name, value in sent.items():
        its = properties.get(name)
        if its is None:
            faults.append(Fault(name[:64], "unknown_field", _unknown(name, properties)))
        elif value is not None and (message := _wrong(its, value)):
            faults.append(Fault(name, "invalid_argument", message))
    if faults:
        raise refusal(faults)
    return {name: value for name, value in sent.items() if value is not None}


def nearest(value: object, allowed: Iterable[str]) -> str | None:
    """Return the allowed text that is most like `value`, or None if none is like it."""
    folded = {one.casefold(): one for one in allowed}
    near = get_close_matches(str(value).strip()[:64].casefold(), folded, 1, NEAR)
    return folded[near[0]] if near else None


def _wrong(schema: Mapping[str, Any], value: Any) -> str:
    kind = schema["type"]
    fits = isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not fits or (kind == "array" and not all(isinstance(item, str) for item in value)):
        return f"Send {_WORDS[kind]}."
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        return f"Send one of: {', '.join(allowed)}."
    least, most = schema.get("minimum"), schema.get("maximum")
    if (least is not None and value < least) or (most is not None and value > most):
        return f"Send a whole number from {least} to {most}."
    return ""


def _unknown(name: str, known: Iterable[str]) -> str:
    return f"This argument is unknown; there are: {', '.join(known) or 'none'}."

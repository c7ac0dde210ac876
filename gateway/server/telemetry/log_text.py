"""Writes a JSON line of the log as text for people."""

from typing import Any

import msgspec

SAME = frozenset({"node", "version"})
"""The fields that are the same in each line of a process."""


def of(line: bytes) -> bytes:
    """Return time, level, event and fields as a line, and a traceback on lines below it."""
    fields = msgspec.json.decode(line)
    time, level, event = (fields.pop(name, "") for name in ("ts", "level", "event"))
    traceback = fields.pop("traceback", "").splitlines()
    words = [f"{name}={_readable(one)}" for name, one in fields.items() if name not in SAME]
    head = " ".join([time[11:], f"{level:7}", _readable(event), *words]).strip()
    return "".join(f"{one}\n" for one in [head, *map(_inert, traceback)]).encode()


def _readable(value: Any) -> str:
    """Return a value in one word, or as JSON."""
    if isinstance(value, str) and value and not set(value) & {" ", '"', "="}:
        return _inert(value)
    return _inert(msgspec.json.encode(value).decode())


def _inert(text: str) -> str:
    """Return a text without what a terminal obeys."""
    return "".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in text)

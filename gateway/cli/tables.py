"""Prints rows: as a table for people, or as one JSON object per line for scripts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

Cells = Mapping[str, Any]
"""Texts, or lists of texts, by their field name in the REST API."""
USER = ("email", "name", "timezone", "state", "createdAt")
KEY = ("visible", "name", "scopes", "state", "createdAt", "lastUsedAt", "expiresAt")
SIGNING_KEY = ("id", "publicKey", "state", "createdAt", "endsAt")
STORE = ("hostname", "name", "aliases", "state", "createdAt")


def say_all(
    rows: Sequence[Cells], columns: Sequence[str], *, as_json: bool, say: Callable[[str], None]
) -> None:
    """Print the `columns` of the rows with a header; as JSON, all cells without a header."""
    if as_json:
        for row in rows:
            say(msgspec.json.encode(row).decode())
        return
    lines = [[_title(name) for name in columns]]
    lines += [[_shown(row.get(name, "-")) for name in columns] for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(columns))]
    for line in lines:
        say("  ".join(map(str.ljust, line, widths)).rstrip())


def inert(text: str) -> str:
    """Replace characters that a terminal could take for a command."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _title(name: str) -> str:
    words = "".join(f" {sign}" if sign.isupper() else sign for sign in name.removesuffix("At"))
    return {"visible": "KEY"}.get(name, words.upper())


def _shown(value: Any) -> str:
    return inert(value if isinstance(value, str) else ",".join(value) or "-")

"""Writes docs/reference/routes.md from the declarations of the REST API."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from gateway.rest.document.openapi import document
from gateway.rest.routes import ROUTES

SENTENCE = re.compile(r"(?<=\w[.:]) ")


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    paths = document(ROUTES)["paths"]
    operations = [
        (f"{method.upper()} {path}", entry)
        for path, methods in paths.items()
        for method, entry in methods.items()
    ]
    tags = list(dict.fromkeys(entry["tags"][0] for _, entry in operations))
    operations.sort(key=lambda one: tags.index(one[1]["tags"][0]))
    for tag, entries in groupby(operations, lambda one: one[1]["tags"][0]):
        yield f"## {tag}\n\n| method and path | does | query |\n| --- | --- | --- |"
        yield "\n".join(_row(path, entry) for path, entry in entries) + "\n"


def _row(path: str, entry: dict[str, Any]) -> str:
    """Return the row of a route: its summary and the first sentence of its description."""
    query = [one["name"] for one in entry["parameters"] if one.get("in") == "query"]
    told = SENTENCE.split(entry.get("description", ""))[0].rstrip(":.")
    does = f"{entry['summary']}. {told}".removesuffix(". ").replace("|", "\\|")
    return f"| `{path}` | {does} | {', '.join(f'`{one}`' for one in query) or '–'} |"

"""The documents and variables of the storefront's operations, as the documentation shows them."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "gateway" / "graphql" / "operations"


def operation(name: str, **placeholders: str) -> tuple[str, dict[str, Any]]:
    """Return the document and the variables of an operation; `$ebookId` is a placeholder."""
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    for place, value in placeholders.items():
        text = text.replace(json.dumps(f"${place}"), json.dumps(value))
    variables: dict[str, Any] = json.loads(text)
    return (FOLDER / f"{name}.graphql").read_text("utf-8"), variables

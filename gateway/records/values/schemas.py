"""Defines parts of JSON Schema that declarations and responses share."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

Schema = Mapping[str, Any]

ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{24}$"}
"""The JSON form of an id."""
ANY_ID: Schema = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
"""An id that a client sends."""
PLACE_ID: Schema = {"type": "string", "pattern": "^([0-9a-fA-F]{24})?$"}
"""The id after which a page starts, or nothing for the first page."""
MOMENT: Schema = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}
"""A day or an instant in a query."""
INSTANT: Schema = {"type": "string", "format": "date-time"}
"""The JSON form of an instant."""


Id = Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""The same for structs."""


def or_null(schema: Schema) -> dict[str, Any]:
    """Return `schema` with null allowed."""
    kind = schema.get("type")
    if isinstance(kind, str) and not {"enum", "anyOf", "allOf"} & schema.keys():
        return {**schema, "type": [kind, "null"]}
    rest = {k: v for k, v in schema.items() if k != "description"}
    described = {k: v for k, v in schema.items() if k == "description"}
    return {"anyOf": [rest, {"type": "null"}], **described}

"""Pieces of JSON Schema that declarations and answers share."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

Schema = Mapping[str, Any]

ID: Schema = {"type": "string", "pattern": "^[0-9a-f]{24}$"}
"""An id as it is shown."""
INSTANT: Schema = {"type": "string", "format": "date-time"}
"""An instant as it is shown."""


Id = Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""The same for structs."""


def or_null(schema: Schema) -> dict[str, Any]:
    """`schema`, and null as well."""
    kind = schema.get("type")
    if isinstance(kind, str) and not {"enum", "anyOf", "allOf"} & schema.keys():
        return {**schema, "type": [kind, "null"]}
    told = {k: v for k, v in schema.items() if k == "description"}
    return {"anyOf": [{k: v for k, v in schema.items() if k not in told}, {"type": "null"}], **told}

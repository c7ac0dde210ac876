"""The schema: its snapshot, its descriptions, and a resolver behind every operation.

A change of the schema shows as a diff of tests/snapshots/schema.graphql, which is recorded with
`RECORD=1 pytest tests/gateway/graphql/test_schema.py`. What goes must be deprecated first: the
recording refuses anything else.
"""

import os
import re
from typing import Any

from graphql import BreakingChangeType, GraphQLSchema, build_schema, find_breaking_changes

from gateway.graphql.fields import MUTATIONS, QUERIES
from gateway.graphql.schema import schema, sdl
from tests.architecture.tree import ROOT

SNAPSHOT = ROOT / "tests" / "snapshots" / "schema.graphql"
REMOVALS = {BreakingChangeType.FIELD_REMOVED, BreakingChangeType.VALUE_REMOVED_FROM_ENUM}


def breaking(old: GraphQLSchema, new: GraphQLSchema) -> list[str]:
    """Return the changes that break clients, without removals of what was deprecated."""
    return [
        change.description
        for change in find_breaking_changes(old, new)
        if not (change.type in REMOVALS and _was_deprecated(old, change.description))
    ]


def _was_deprecated(old: GraphQLSchema, description: str) -> bool:
    """Return whether the removed field or value was deprecated."""
    field = re.match(r"Field (\w+)\.(\w+) was removed", description)
    if field is not None:
        kind: Any = old.type_map[field[1]]
        return kind.fields[field[2]].deprecation_reason is not None
    value = re.match(r"(?:Enum value|Value) '?(\w+)\.(\w+)'? was removed", description)
    assert value is not None, description
    enum: Any = old.type_map[value[1]]
    return enum.values[value[2]].deprecation_reason is not None


def test_the_schema_is_the_recorded_one() -> None:
    assert breaking(build_schema(SNAPSHOT.read_text("utf-8")), schema()) == []
    if os.environ.get("RECORD"):
        SNAPSHOT.write_text(sdl(), "utf-8")
    assert sdl() == SNAPSHOT.read_text("utf-8"), "record it, and add a line to CHANGELOG.md"


def test_every_operation_has_a_resolver_and_every_resolver_an_operation() -> None:
    made = schema()
    for kind, resolvers in ((made.query_type, QUERIES), (made.mutation_type, MUTATIONS)):
        assert kind is not None
        assert set(kind.fields) - set(resolvers) == set()
        assert set(resolvers) - set(kind.fields) == set()

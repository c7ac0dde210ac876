"""The schema: its snapshot, its descriptions, and a resolver behind every operation.

A change of the schema shows as a diff of tests/snapshots/schema.graphql, which is recorded with
`RECORD=1 pytest tests/gateway/graphql/test_schema.py`. What goes must be deprecated first: the
recording refuses anything else.
"""

import os
import re
from typing import Any

from graphql import (
    BreakingChangeType,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    find_breaking_changes,
)

from gateway.graphql.fields import MUTATIONS, QUERIES
from gateway.graphql.schema import schema, sdl
from tests.architecture.tree import ROOT

SNAPSHOT = ROOT / "tests" / "snapshots" / "schema.graphql"
REMOVALS = {
    BreakingChangeType.FIELD_REMOVED,
    BreakingChangeType.VALUE_REMOVED_FROM_ENUM,
}


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


def test_a_removal_must_be_deprecated_first() -> None:
    old = build_schema('type Query { a: Int  b: Int @deprecated(reason: "Use a") }')
    assert breaking(old, build_schema("type Query { a: Int }")) == []
    assert len(breaking(old, build_schema("type Query { b: Int }"))) == 1
    assert len(breaking(old, build_schema("type Query { a: String  b: Int }"))) == 1
    assert len(breaking(old, build_schema("type Query { a(x: Int!): Int  b: Int }"))) == 1
    assert breaking(old, build_schema("type Query { a: Int  b: Int  c: Int }")) == []
    values = "type Query { a: E } enum E { A  B }"
    assert len(breaking(build_schema(values), build_schema(values.replace("B", "")))) == 1
    values = "type Query { a: E } enum E { A  B @deprecated }"
    assert breaking(build_schema(values), build_schema(values.replace("B @deprecated", ""))) == []


def test_every_operation_has_a_resolver_and_every_resolver_an_operation() -> None:
    made = schema()
    for kind, resolvers in ((made.query_type, QUERIES), (made.mutation_type, MUTATIONS)):
        assert kind is not None
        assert set(kind.fields) - set(resolvers) == set()
        assert set(resolvers) - set(kind.fields) == set()


def undescribed(made: GraphQLSchema) -> list[str]:
    """Return every type, field, argument and value without a description."""
    missing = []
    for name, kind in made.type_map.items():
        if name.startswith("__"):
            continue
        if not kind.description:
            missing.append(name)
        if isinstance(kind, GraphQLEnumType):
            missing += [f"{name}.{value}" for value, v in kind.values.items() if not v.description]
        if isinstance(kind, GraphQLInputObjectType):
            missing += [f"{name}.{field}" for field, f in kind.fields.items() if not f.description]
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
            for field_name, field in kind.fields.items():
                if not field.description:
                    missing.append(f"{name}.{field_name}")
                missing += [
                    f"{name}.{field_name}({argument})"
                    for argument, a in field.args.items()
                    if not a.description
                ]
    return missing


def test_everything_is_described() -> None:
    assert undescribed(schema()) == []
    made = build_schema('"q" type Query { a(b: Int): E } enum E { C } input I { d: Int }')
    assert undescribed(made) == ["Query.a", "Query.a(b)", "E", "E.C", "I", "I.d"]


def test_every_mutation_takes_one_input_with_the_hostname_first() -> None:
    made = schema()
    assert made.mutation_type is not None
    for name, field in made.mutation_type.fields.items():
        kind = f"{name[0].upper()}{name[1:]}Mutation"
        assert {key: str(a.type) for key, a in field.args.items()} == {"input": f"{kind}Input!"}
        assert str(field.type) == f"{kind}Payload"
        sent = made.type_map[f"{kind}Input"]
        assert isinstance(sent, GraphQLInputObjectType)
        assert next(iter(sent.fields)) == "hostname"
        assert str(sent.fields["hostname"].type) == "String!"
        assert "clientMutationId" in sent.fields

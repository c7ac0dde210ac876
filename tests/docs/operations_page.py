"""Writes storefront-operations.md from the schema and the documents that the tests send."""

import json
from collections.abc import Iterator, Mapping

from graphql import GraphQLField, GraphQLInputField, GraphQLInputObjectType, get_named_type

from gateway.graphql.schema import schema
from tests.support.operations import FOLDER, operation

MORE = {"products": ["searchProducts"]}
"""Further examples of an operation."""


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    made = schema()
    for title, kind in (("Queries", made.query_type), ("Mutations", made.mutation_type)):
        assert kind is not None
        yield f"## {title}\n"
        for name, field in sorted(kind.fields.items()):
            yield from _operation(name, field)


def _operation(name: str, field: GraphQLField) -> Iterator[str]:
    yield f"### {name}\n"
    yield f"{field.description}\n"
    argument = field.args.get("input")
    if argument is None:
        told: Mapping[str, tuple[str, str | None]] = {
            one: (str(found.type), found.description) for one, found in field.args.items()
        }
    else:
        wanted = get_named_type(argument.type)
        assert isinstance(wanted, GraphQLInputObjectType)
        told = {one: _told(found) for one, found in wanted.fields.items()}
    yield "| argument | type | meaning |\n| --- | --- | --- |"
    for one, (kind, description) in told.items():
        yield f"| `{one}` | `{kind}` | {description} |"
    yield ""
    for example in (name, *MORE.get(name, ())):
        document, variables = operation(example)
        yield f"```graphql\n{document.strip()}\n```\n"
        yield f"```json\n{json.dumps(variables, indent=2, ensure_ascii=False)}\n```\n"


def _told(found: GraphQLInputField) -> tuple[str, str | None]:
    return str(found.type), found.description


def missing() -> list[str]:
    """Return the operations without an example."""
    made = schema()
    assert made.query_type is not None
    assert made.mutation_type is not None
    names = {*made.query_type.fields, *made.mutation_type.fields}
    return sorted(name for name in names if not (FOLDER / f"{name}.graphql").exists())

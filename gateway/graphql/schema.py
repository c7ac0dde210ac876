"""Builds the schema from its SDL file and binds the resolvers to its fields."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any

from graphql import (
    GraphQLField,
    GraphQLID,
    GraphQLInputObjectType,
    GraphQLObjectType,
    GraphQLResolveInfo,
    GraphQLSchema,
    GraphQLString,
    build_schema,
    get_named_type,
)

from gateway.graphql.fields import MUTATIONS, QUERIES, TYPES, kind_of
from gateway.graphql.request_context import FieldResolver, RequestContext, Resolver

BLANKS = " \t\r\n"
_TEXTS = (GraphQLString, GraphQLID)


def sdl() -> str:
    """Return the text of the schema."""
    return files("gateway.graphql").joinpath("schema.graphql").read_text("utf-8")


@cache
def schema() -> GraphQLSchema:
    """Return the executable schema."""
    schema = build_schema(sdl())
    _bind(schema, "Query", {name: partial(_query, resolver) for name, resolver in QUERIES.items()})
    _bind(
        schema,
        "Mutation",
        {name: partial(_mutation, resolver) for name, resolver in MUTATIONS.items()},
    )
    for type_name, fields in TYPES.items():
        _bind(
            schema,
            type_name,
            {name: partial(_field, resolver) for name, resolver in fields.items()},
        )
    node: Any = schema.type_map["Node"]
    node.resolve_type = lambda record, info, kind: kind_of(record)
    return schema


def _bind(
    schema: GraphQLSchema,
    type_name: str,
    resolvers: Mapping[str, Callable[[GraphQLField], Callable[..., Any]]],
) -> None:
    kind = schema.type_map[type_name]
    assert isinstance(kind, GraphQLObjectType)
    for name, made in resolvers.items():
        kind.fields[name].resolve = made(kind.fields[name])


def _query(resolver: Resolver, field: GraphQLField) -> Callable[..., Any]:
    optional = _optional(field.args)

    def resolve(_: None, info: GraphQLResolveInfo[RequestContext], /, **args: Any) -> Any:
        return resolver(info.context, _given(args, optional))

    return resolve


def _mutation(resolver: Resolver, field: GraphQLField) -> Callable[..., Any]:
    """Return the resolver of a mutation, whose payload repeats the input's clientMutationId."""
    kind = get_named_type(field.args["input"].type)
    assert isinstance(kind, GraphQLInputObjectType)
    optional = _optional(kind.fields)

    async def resolve(
        _: None,
        info: GraphQLResolveInfo[RequestContext],
        /,
        input: dict[str, Any],  # noqa: A002 - the argument's name in the schema
    ) -> Any:
        info.context.begin_mutation(info.path.key)
        payload = await resolver(info.context, _given(input, optional))
        info.context.loaders.forget()
        return {**payload, "clientMutationId": input.get("clientMutationId")}

    return resolve


def _field(resolver: FieldResolver, field: GraphQLField) -> Callable[..., Any]:
    optional = _optional(field.args)

    def resolve(source: Any, info: GraphQLResolveInfo[RequestContext], /, **args: Any) -> Any:
        return resolver(source, info.context, _given(args, optional))

    return resolve


def _optional(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the arguments, or fields of an input, that are a text or null.

    A password is none of them: one of blanks is a password.
    """
    return frozenset(
        name for name, value in values.items() if value.type in _TEXTS and name != "password"
    )


def _given(args: dict[str, Any], optional: frozenset[str]) -> dict[str, Any]:
    """Return arguments with null for an optional text that is blank: so a page leaves it out."""
    if not optional:
        return args
    blank = [name for name, value in args.items() if name in optional and _is_blank(value)]
    return {**args, **dict.fromkeys(blank)} if blank else args


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip(BLANKS)

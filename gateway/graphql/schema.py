"""Builds the schema from its SDL file and binds the resolvers to its fields."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from graphql import GraphQLObjectType, GraphQLResolveInfo, GraphQLSchema, build_schema

from gateway.graphql.fields import MUTATIONS, QUERIES, TYPES, kind_of
from gateway.graphql.visit import FieldResolver, Resolver, Visit


def sdl() -> str:
    """Return the text of the schema."""
    return files("gateway.graphql").joinpath("schema.graphql").read_text("utf-8")


@cache
def schema() -> GraphQLSchema:
    """Return the executable schema."""
    schema = build_schema(sdl())
    _bind(schema, "Query", {name: _query(resolver) for name, resolver in QUERIES.items()})
    _bind(schema, "Mutation", {name: _mutation(resolver) for name, resolver in MUTATIONS.items()})
    for type_name, fields in TYPES.items():
        _bind(schema, type_name, {name: _field(resolver) for name, resolver in fields.items()})
    node: Any = schema.type_map["Node"]
    node.resolve_type = lambda record, info, kind: kind_of(record)
    return schema


def _bind(
    schema: GraphQLSchema, type_name: str, resolvers: Mapping[str, Callable[..., Any]]
) -> None:
    kind = schema.type_map[type_name]
    assert isinstance(kind, GraphQLObjectType)
    for name, resolve in resolvers.items():
        kind.fields[name].resolve = resolve


def _query(resolver: Resolver) -> Callable[..., Any]:
    def resolve(_: None, info: GraphQLResolveInfo[Visit], /, **args: Any) -> Any:
        return resolver(info.context, args)

    return resolve


def _mutation(resolver: Resolver) -> Callable[..., Any]:
    """Return the resolver of a mutation, whose payload repeats the input's clientMutationId."""

    async def resolve(_: None, info: GraphQLResolveInfo[Visit], /, input: dict[str, Any]) -> Any:  # noqa: A002 - the argument's name in the schema
        info.context.begin_mutation(info.path.key)
        payload = await resolver(info.context, input)
        info.context.loaders.forget()
        return {**payload, "clientMutationId": input.get("clientMutationId")}

    return resolve


def _field(resolver: FieldResolver) -> Callable[..., Any]:
    def resolve(source: Any, info: GraphQLResolveInfo[Visit], /, **args: Any) -> Any:
        return resolver(source, info.context, args)

    return resolve

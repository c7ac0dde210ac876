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
    made = build_schema(sdl())
    _bind(made, "Query", {name: _query(wanted) for name, wanted in QUERIES.items()})
    _bind(made, "Mutation", {name: _mutation(wanted) for name, wanted in MUTATIONS.items()})
    for type_name, fields in TYPES.items():
        _bind(made, type_name, {name: _field(wanted) for name, wanted in fields.items()})
    node: Any = made.type_map["Node"]
    node.resolve_type = lambda found, info, kind: kind_of(found)
    return made


def _bind(made: GraphQLSchema, type_name: str, resolvers: Mapping[str, Callable[..., Any]]) -> None:
    kind = made.type_map[type_name]
    assert isinstance(kind, GraphQLObjectType)
    for name, resolve in resolvers.items():
        kind.fields[name].resolve = resolve


def _query(wanted: Resolver) -> Callable[..., Any]:
    def resolve(_: None, info: GraphQLResolveInfo[Visit], /, **args: Any) -> Any:
        return wanted(info.context, args)

    return resolve


def _mutation(wanted: Resolver) -> Callable[..., Any]:
    """Return the resolver of a mutation, whose payload repeats the input's clientMutationId."""

    async def resolve(_: None, info: GraphQLResolveInfo[Visit], /, input: dict[str, Any]) -> Any:  # noqa: A002 - the argument's name in the schema
        info.context.begin_mutation(info.path.key)
        payload = await wanted(info.context, input)
        info.context.loaders.forget()
        return {**payload, "clientMutationId": input.get("clientMutationId")}

    return resolve


def _field(wanted: FieldResolver) -> Callable[..., Any]:
    def resolve(source: Any, info: GraphQLResolveInfo[Visit], /, **args: Any) -> Any:
        return wanted(source, info.context, args)

    return resolve

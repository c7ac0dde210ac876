"""Collects the resolvers of all fields; a module of this package serves one part of the schema.

The value of an object is a dict by field name, or a Record whose type has resolvers in TYPES. A
field without a resolver is read from the dict.
"""

from collections.abc import Mapping
from typing import Any

from gateway.graphql.fields import (
    account,
    cart,
    identity,
    leads,
    modals,
    nodes,
    orders,
    products,
    profile,
    reviews,
    stores,
)
from gateway.graphql.request_context import FieldResolver, Resolver

_PARTS: tuple[Any, ...] = (
    stores,
    products,
    reviews,
    cart,
    orders,
    account,
    profile,
    identity,
    leads,
    modals,
)

NODES: nodes.Public = {k: v for part in _PARTS for k, v in getattr(part, "NODES", {}).items()}
"""The loader of each type that `node` returns, from the parts that have one."""
QUERIES: Mapping[str, Resolver] = {
    **{k: v for part in _PARTS for k, v in part.QUERIES.items()},
    **nodes.queries(NODES),
}
MUTATIONS: Mapping[str, Resolver] = {k: v for part in _PARTS for k, v in part.MUTATIONS.items()}


def _types() -> Mapping[str, Mapping[str, FieldResolver]]:
    """Return the resolvers by type and field; several parts may serve fields of one type."""
    resolvers: dict[str, dict[str, FieldResolver]] = {}
    for part in _PARTS:
        for name, fields in part.TYPES.items():
            resolvers.setdefault(name, {}).update(fields)
    return resolvers


TYPES = _types()
KINDS: Mapping[str, str] = {
    "store": "Store",
    "product": "Product",
    "category": "Category",
    "review": "Review",
    "discount modal": "DiscountModal",
}
"""The GraphQL type of a record, by the noun of its resource."""


def kind_of(record: Any) -> str:
    """Return the GraphQL type of an object that implements Node."""
    return KINDS[record.resource.noun]

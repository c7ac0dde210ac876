"""Collects the resolvers of all fields; a module of this package serves one part of the schema.

The value of an object is a dict by field name, or a Record whose type has resolvers in TYPES. Fields
without a resolver are read from the dict.
"""

from collections.abc import Mapping
from typing import Any

from gateway.graphql.fields import stores
from gateway.graphql.visit import FieldResolver, Resolver

QUERIES: Mapping[str, Resolver] = {**stores.QUERIES}
MUTATIONS: Mapping[str, Resolver] = {}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {**stores.TYPES}
KINDS: Mapping[str, str] = {"store": "Store"}
"""The GraphQL type of a record, by the noun of its resource."""


def kind_of(found: Any) -> str:
    """Return the GraphQL type of an object that implements Node."""
    return KINDS[found.resource.noun]

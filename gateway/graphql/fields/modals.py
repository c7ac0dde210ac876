"""Resolves discount modals."""

from collections.abc import Mapping

from gateway.graphql.visit import FieldResolver, Resolver

QUERIES: Mapping[str, Resolver] = {}
MUTATIONS: Mapping[str, Resolver] = {}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {}

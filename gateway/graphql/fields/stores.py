"""Resolves stores."""

from collections.abc import Mapping

from msgspec import json

from gateway.domain.storefront.stores import stores
from gateway.graphql.fields.nodes import Public
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.record import Record
from gateway.records.values.global_ids import global_id


async def store(visit: RequestContext, args: Args) -> Record:
    return (await visit.visitor(args["hostname"])).store


NODES: Public = {"Store": stores.active}
QUERIES: Mapping[str, Resolver] = {"store": store}
MUTATIONS: Mapping[str, Resolver] = {}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "Store": {
        "id": lambda store, visit, args: global_id("Store", store.id),
        "name": lambda store, visit, args: store["name"],
        "hostname": lambda store, visit, args: store["hostname"],
        "paymentMethods": lambda store, visit, args: json.decode(store["payment_methods"]),
    }
}

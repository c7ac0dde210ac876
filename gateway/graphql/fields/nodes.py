"""Resolves `node` and `nodes`: public objects of active stores by global id."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from gateway.graphql.request_context import Args, RequestContext, Resolver
from gateway.records.errors import Fault
from gateway.records.query import MOST
from gateway.records.record import refusal
from gateway.records.values.global_ids import parse

Public = Mapping[str, Callable[..., Awaitable[Mapping[str, Any]]]]
"""The loader of each public type: (tx, record ids) → objects of active stores by record id."""


def queries(public: Public) -> Mapping[str, Resolver]:
    """Return the resolvers of `node` and `nodes` for the types in `public`."""

    async def node(visit: RequestContext, args: Args) -> Any:
        return await _found(visit, args["id"])

    async def nodes(visit: RequestContext, args: Args) -> list[Any]:
        if len(args["ids"]) > MOST:
            message = f"Send at most {MOST} ids."
            raise refusal([Fault("ids", "too_many", message)])
        loads = [_found(visit, text) for text in args["ids"]]
        return [await load for load in loads]

    def _found(visit: RequestContext, text: str) -> Awaitable[Any]:
        kind, record_id = parse(text) or ("", "")
        if kind not in public:
            return _none()
        return visit.loaders.load(public[kind], record_id)

    return {"node": node, "nodes": nodes}


async def _none() -> None:
    return None

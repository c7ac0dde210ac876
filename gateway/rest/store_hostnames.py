"""Handles the proofs of a store's hostnames."""

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.storefront.stores import host_proofs
from gateway.domain.storefront.stores.host_proofs import Proof, State
from gateway.records.audit import Actor
from gateway.records.values import dates
from gateway.records.values.schemas import Instant
from gateway.rest.auth import authenticate
from gateway.rest.body import PRIVATE, answer
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import operation
from gateway.server.app_keys import DB
from gateway.server.http import bodies


class StoreHostname(Struct, frozen=True, rename="camel"):
    """A hostname of a store, and the TXT record that proves it. `state` is `pending` before the
    first look, then `missing` or `error` (of the name servers), and `verified` once it was found;
    `failing` is a hostname that was verified and whose record is missing for less than a week;
    `expired` is one that lacked its proof for two weeks and is looked for no more."""

    hostname: str
    state: State
    record_name: str
    record_value: str
    checked_at: Instant | UnsetType = UNSET
    verified_at: Instant | UnsetType = UNSET


class StoreHostnames(Struct, frozen=True):
    """The hostname and the aliases of a store."""

    data: list[StoreHostname]


EXAMPLE = StoreHostname(
    "shop.example.com", "verified", "_carteiro.shop.example.com",
    host_proofs.value_of("example"), shapes.NOW, shapes.NOW,
)  # fmt: skip


@operation(
    "listStoreHostnames", "Stores", "List the hostnames of a store with their proofs",
    shapes.struct(StoreHostnames([EXAMPLE])), parameters=(describe.id_of("store"),),
    description="Where the installation verifies hostnames, a store answers only at those that are "
    "`verified` or `failing`. A hostname is looked for within a minute, then every five minutes, "
    "the longer it lacks its record the more rarely, for two weeks; once verified, every day.",
)  # fmt: skip
async def list_hostnames(request: web.Request) -> web.Response:
    """GET /api/stores/{id}/hostnames: the proofs of a store's hostnames."""
    return await _response(request, await authenticate(request))


@operation(
    "checkStoreHostnames", "Stores", "Look again for the hostnames of a store without a proof",
    shapes.written(shapes.struct(StoreHostnames([EXAMPLE]))),
    parameters=(describe.id_of("store"),),
    description="They are looked for within a minute, or five minutes after their last look, and "
    "for two weeks from then on. The response has their present state.",
)  # fmt: skip
async def check_hostnames(request: web.Request) -> web.Response:
    """POST /api/stores/{id}/hostnames/check: look again for hostnames without a proof."""
    caller = await authenticate(request)
    await bodies.read(request)
    store_id = request.match_info["id"].lower()
    await request.app[DB].write(host_proofs.ask_again, caller, store_id)
    if "read" not in caller.scopes:
        return answer({"id": store_id}, headers=PRIVATE)
    return await _response(request, caller)


async def _response(request: web.Request, caller: Actor) -> web.Response:
    proofs = await request.app[DB].read(host_proofs.of_store, caller, request.match_info["id"])
    body = StoreHostnames([_shown(one) for one in proofs])
    return web.Response(body=msgspec.json.encode(body), headers=PRIVATE)


def _shown(one: Proof) -> StoreHostname:
    return StoreHostname(
        one.hostname, one.state, one.record, one.value,
        UNSET if one.checked_at is None else dates.show(one.checked_at),
        UNSET if one.proven_at is None else dates.show(one.proven_at),
    )  # fmt: skip

"""Handles the proofs of a store's hostnames."""

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.storefront.stores import host_proofs
from gateway.domain.storefront.stores.host_proofs import Proof, State
from gateway.records.values import dates
from gateway.records.values.schemas import Instant
from gateway.rest.auth import authenticate
from gateway.rest.body import PRIVATE
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import operation
from gateway.server.app_keys import DB


class StoreHostname(Struct, frozen=True, rename="camel"):
    """A hostname of a store, and the TXT record that proves it. `state` is `pending` before the
    first look, then `missing` or `error` (of the name servers), and `verified` once it was found;
    `failing` is a hostname that was verified and whose record is missing for less than a week."""

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
    "`verified` or `failing`. A hostname is looked for within a minute, then each five minutes "
    "until it is verified, then once a day.",
)  # fmt: skip
async def list_hostnames(request: web.Request) -> web.Response:
    """GET /api/stores/{id}/hostnames: the proofs of a store's hostnames."""
    caller = await authenticate(request)
    proofs = await request.app[DB].read(host_proofs.of_store, caller, request.match_info["id"])
    body = StoreHostnames([_shown(one) for one in proofs])
    return web.Response(body=msgspec.json.encode(body), headers=PRIVATE)


def _shown(one: Proof) -> StoreHostname:
    return StoreHostname(
        one.hostname, one.state, one.record, one.value,
        UNSET if one.checked_at is None else dates.show(one.checked_at),
        UNSET if one.proven_at is None else dates.show(one.proven_at),
    )  # fmt: skip

"""The page of a store's hostnames: whether each is proven, and the DNS record that proves it."""

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.storefront.stores import host_proofs, stores
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.server.app_keys import DB, DIRECTORY
from outbox.database.transaction import Tx


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the hostname and the aliases of a store."""
    store, proofs = await request.app[DB].read(_of_store, visitor.actor, pages.id_of(request))
    verifies = request.app[DIRECTORY].proven
    unproven = any(one.proven_at is None for one in proofs)
    context = {"store": store, "proofs": proofs, "verifies": verifies, "unproven": unproven}
    return templates.render(request, visitor, "store_hostnames.html", context)


async def check(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Look again for the hostnames without a proof."""
    store_id = pages.id_of(request)
    await request.app[DB].write(host_proofs.ask_again, visitor.actor, store_id)
    return pages.to(f"/console/stores/{store_id}/hostnames", "host_check")


async def _of_store(tx: Tx, actor: Actor, store_id: str) -> tuple[Record, list[host_proofs.Proof]]:
    store = await actions.read(tx, actor, stores.STORES, store_id)
    return store, [*await host_proofs.of_store(tx, actor, store_id)]

"""Compares first pages that a server keeps with those that the database has."""

from __future__ import annotations

import msgspec

from gateway.domain.catalogue import RESOURCES
from gateway.records import list_versions, query
from gateway.records.cursors import text_of
from gateway.records.query import Query
from gateway.rest import lists
from gateway.rest.body import shown
from gateway.rest.first_pages import FIRST_PAGES
from outbox.database.transaction import Row, Tx
from tests.support.site import Site


async def kept_pages_are_true(site: Site) -> int:
    """Assert that each page that counts as unchanged has the bytes of one read whole.

    Return how many those are.
    """
    resources = {resource.table: resource for resource in RESOURCES}
    unchanged = 0
    for (table, owner_id, limit), kept in site.app[FIRST_PAGES].pages.items():
        resource = resources[table]
        owner = await site.db.read(_zone, owner_id)
        if owner is None:
            continue
        zone = owner["timezone"]
        if (
            await site.db.read(list_versions.current, resource, owner_id, limit, zone)
            == kept.edition
        ):
            page = await site.db.read(query.page, resource, owner_id, Query(limit=limit), zone)
            cursor = text_of(resource, Query(limit=limit), page.onward)
            beside = lists.envelope(page, 1, limit, cursor)
            whole = {"data": shown(resource, page.records), **beside}
            assert kept == (kept.edition, msgspec.json.encode(whole), cursor), table
            unchanged += 1
    return unchanged


async def _zone(tx: Tx, owner_id: str) -> Row | None:
    return await tx.one("select timezone from users where id = $1", owner_id)

"""Two cells with a directory, on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from msgspec import structs

from gateway.domain.cells.directory import CellDirectory
from gateway.server.cells import directory_of
from gateway.server.config import Auth, Cell, Config, Peer
from outbox.database.transaction import Database
from tests.support.databases import PostgresServer
from tests.support.movers import opened
from tests.support.rest import UNLIMITED
from tests.support.site import Site, serving

NAMES = ("one", "two")
ADDRESSES = {name: f"https://{name}.example.com" for name in NAMES}


def configured(name: str, directory: str) -> Config:
    """Return the configuration of a cell with open sign-up."""
    peers = tuple(Peer(other, url) for other, url in ADDRESSES.items() if other != name)
    return structs.replace(
        UNLIMITED, cell=Cell(name, peers, directory), auth=Auth(signup="open", token_hours=1)
    )


@dataclass(frozen=True)
class Pair:
    """Two running cells, and the directory as the second one uses it."""

    one: Site
    two: Site
    directory: CellDirectory
    urls: tuple[str, ...]


@asynccontextmanager
async def cells(server: PostgresServer) -> AsyncIterator[Pair]:
    """Serve two new cells until the block ends."""
    directory_url = await server.empty()
    urls = [await server.fresh() for _ in NAMES]
    try:
        async with AsyncExitStack() as stack:
            sites: list[Site] = []
            for name, url in zip(NAMES, urls, strict=True):
                db: Database = await opened(url)
                stack.push_async_callback(db.close)
                config = configured(name, directory_url)
                sites.append(await stack.enter_async_context(serving(db, config)))
            config = configured("two", directory_url)
            directory = directory_of(config, sites[1].db.clock, sites[1].db.ids)
            assert directory is not None
            stack.push_async_callback(directory.close)
            yield Pair(sites[0], sites[1], directory, (*urls, directory_url))
    finally:
        for url in (*urls, directory_url):
            await server.drop(url)

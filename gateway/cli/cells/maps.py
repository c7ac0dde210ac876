"""The maps by which HAProxy finds a cell, made from the directory: see docs/deploy."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.domain.cells.directory import CellDirectory, Kind
from gateway.server.config import Config

MOVED, HOSTS = "moved.map", "hosts.map"
SOURCES: Mapping[str, tuple[Kind, ...]] = {MOVED: ("owner", "key"), HOSTS: ("hostname",)}
"""The names of each map: owners who moved and their keys without a mark; hostnames of stores."""

Map = dict[str, str]
"""The cell of each name."""


async def read(config: Config, directory: CellDirectory) -> dict[str, Map]:
    """Return the maps by the names of their files. Raise DatabaseUnavailable."""
    maps: dict[str, Map] = {}
    for name, kinds in SOURCES.items():
        maps[name] = {}
        for kind in kinds:
            after = ""
            while page := await directory.page(kind, after):
                maps[name] |= {one.value: one.cell for one in page}
                after = page[-1].value
    for peer in config.cell.peers:
        # The address of a cell leads to it, whatever a request has.
        maps[HOSTS][urlsplit(peer.url).hostname or ""] = peer.name
    return maps


def text(entries: Map) -> str:
    """Return a map as HAProxy reads it."""
    return "".join(f"{name} {cell}\n" for name, cell in sorted(entries.items()))

"""What HAProxy finds a cell by: maps from the directory, and its API that replaces them as a whole.

See docs/deploy; the runtime API is that of version 2.4 and later.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from gateway.domain.cells.directory import CellDirectory, Kind
from gateway.server.config import Config
from outbox.errors import CannotStart

MOVED, HOSTS = "moved.map", "hosts.map"
SOURCES: Mapping[str, tuple[Kind, ...]] = {MOVED: ("owner", "key"), HOSTS: ("hostname",)}
"""The names of each map: owners who moved and their keys without a mark; hostnames of stores."""

LINES = 200
"""Entries of one command: it has to fit into HAProxy's buffer of 16 kB."""
ANSWER_SECONDS = 10.0
_VERSION = re.compile(r"New version created: (\d+)")

Map = dict[str, str]
"""The cell of each name."""


async def read_maps(config: Config, directory: CellDirectory) -> dict[str, Map]:
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


def map_text(entries: Map) -> str:
    """Return a map as HAProxy reads it."""
    return "".join(f"{name} {cell}\n" for name, cell in sorted(entries.items()))


class Runtime:
    """The socket of a running HAProxy."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def replace(self, file: str, entries: Map) -> None:
        """Replace the map that HAProxy has read from `file`, at once for all of its requests.

        Raise CannotStart; HAProxy keeps the old map then.
        """
        answer = await self._ask(f"prepare map {file}")
        version = _VERSION.search(answer)
        if version is None:
            raise CannotStart(
                f"HAProxy has no map {file}: {answer}; --folder is the folder that its "
                "configuration names"
            )
        lines = iter([f"{name} {cell}" for name, cell in sorted(entries.items())])
        while part := list(islice(lines, LINES)):
            await self._must(f"add map @{version[1]} {file} <<", part)
        await self._must(f"commit map @{version[1]} {file}")

    async def _must(self, command: str, payload: Sequence[str] = ()) -> None:
        answer = await self._ask(command, payload)
        if answer:
            raise CannotStart(f"HAProxy refused {command.removesuffix(' <<')!r}: {answer}")

    async def _ask(self, command: str, payload: Sequence[str] = ()) -> str:
        lines = [command, *payload, ""] if payload else [command]
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._socket)
                try:
                    writer.write("".join(f"{line}\n" for line in lines).encode())
                    await writer.drain()
                    return (await reader.read()).decode().strip()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or "no answer"
            raise CannotStart(
                f"{self._socket}: {why}; --socket is the `stats socket` of HAProxy with level admin"
            ) from None

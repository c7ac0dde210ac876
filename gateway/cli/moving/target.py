"""The installation that an owner moves to, and what the directory of cells says of him."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import structs

from gateway.domain.cells.directory import CellDirectory
from gateway.domain.cells.registration import names_of
from gateway.server.cell_parts import directory_of
from gateway.server.config import Config, ConfigFaults, load
from outbox.clock import SystemClock
from outbox.database.database_urls import SQLITE, is_sqlite, normal, sqlite_file, without_password
from outbox.database.transaction import Tx
from outbox.errors import CannotStart, DatabaseUnavailable
from outbox.ids import Ids

_URL = re.compile(r"[A-Za-z0-9+.]+:/")


def configured(config: Config, to: str, key_file: str | None = None) -> Config:
    """Return the configuration of the target: a database, a cell, or a configuration file.

    Raise CannotStart.
    """
    if _URL.match(to):
        database = structs.replace(config.database, url=url_of(to), direct_url="")
        target = structs.replace(config, database=database, cell=type(config.cell)())
    else:
        target = _read(_file(config, to))
        if key_file is not None:
            raise CannotStart("--key-file is for a database; a configuration has its own keys")
        if config.cell.name and config.cell.directory != target.cell.directory:
            raise CannotStart("cell.directory is not that of the target; cells share one directory")
    if key_file is None:
        return target
    if not Path(key_file).exists():
        raise CannotStart(f"there is no key file {key_file}")
    secrets = structs.replace(config.secrets, key_file=key_file, keys="")
    return structs.replace(target, secrets=secrets)


def url_of(to: str) -> str:
    """Return the URL of a database given by --to. Raise CannotStart."""
    try:
        return normal(to)
    except ValueError as error:
        raise CannotStart(f"--to {error}") from None


def peer_config(config: Config, name: str) -> Config:
    """Return the configuration of a cell of cell.peers. Raise CannotStart."""
    return _read(_file(config, name))


def named(config: Config) -> str:
    """Return what `owners` calls an installation: the name of its cell, else its database."""
    url = config.database.url
    return config.cell.name or (
        f"{SQLITE}{sqlite_file(url)}" if is_sqlite(url) else without_password(url)
    )


def same(config: Config, to_config: Config) -> bool:
    """Return whether both name the same database, also the same file by two paths."""
    urls = [each.database.url for each in (config, to_config)]
    if not all(map(is_sqlite, urls)):
        return urls[0] == urls[1]
    first, second = (os.path.realpath(sqlite_file(url)) for url in urls)
    return first == second


def _file(config: Config, to: str) -> Path:
    cells = {peer.name: peer.config for peer in config.cell.peers}
    if to in cells and not cells[to]:
        raise CannotStart(
            f"cell.peers has no config of {to}; add it: the path of that cell's configuration file"
        )
    path = Path(cells.get(to, to))
    if not path.is_file():
        raise CannotStart(
            f"there is no configuration {path}; --to takes the URL of a database, a name in "
            "cell.peers, or a configuration file"
        )
    return path


def _read(path: Path) -> Config:
    try:
        return load(path, {})
    except ConfigFaults as wrong:
        raise CannotStart(f"{path}: {wrong}") from None


class Address:
    """The owner's entries in the directory of the target; without one, nothing."""

    def __init__(self, directory: CellDirectory | None, cell: str, shared: bool) -> None:
        self._directory = directory
        self._cell = cell
        self._shared = shared

    async def announce(self, source: Tx, owner_id: str) -> None:
        """Enter the names of an owner who comes from outside. Raise CannotStart for a taken one."""
        if self._directory is None or self._shared:
            return
        names = await names_of(source, owner_id, self._cell)
        try:
            taken = await self._directory.enter(names)
        except DatabaseUnavailable as error:
            raise CannotStart(f"cell.directory of the target: {error}") from None
        if taken:
            raise CannotStart(f"another cell has the {taken[0].kind} {taken[0].value}")

    async def change(self, target: Tx, owner_id: str) -> None:
        """Say that the target has the owner, again without harm. Raise CannotStart."""
        if self._directory is None:
            return
        names = await names_of(target, owner_id, self._cell)
        try:
            await self._directory.enter(names)
        except DatabaseUnavailable as error:
            raise CannotStart(
                f"the account has moved, but not in cell.directory: {error}; repeat the command"
            ) from None


@asynccontextmanager
async def address(config: Config, to_config: Config) -> AsyncIterator[Address]:
    """Connect to the directory of the target, which the source may share."""
    directory = directory_of(to_config, SystemClock(), Ids())
    try:
        shared = config.cell.directory == to_config.cell.directory
        yield Address(directory, to_config.cell.name, shared)
    finally:
        if directory is not None:
            await directory.close()

"""The `carteiro cells` commands. They raise their failures."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.cli import tables
from gateway.cli.cells import haproxy, loads
from gateway.cli.cells.haproxy import Runtime
from gateway.cli.commands import existing
from gateway.cli.moving.target import peer_config
from gateway.domain.cells.directory import CellDirectory
from gateway.server.cell_parts import directory_of
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database.disk import measure
from outbox.database.transaction import DUTIES
from outbox.errors import CannotStart, DatabaseUnavailable
from outbox.ids import Ids

Say = Callable[[str], None]
LIST = ("name", "url", "owners", "stores", "eventsLastHour", "eventsLastDay", "megabytes", "state")
PLAN = ("email", "from", "to", "load")


async def listed(config: Config, arguments: Namespace, say: Say) -> None:
    """Print each cell with what it has; one whose database does not answer says so."""
    rows: list[tables.Cells] = []
    addresses = {peer.name: peer.url for peer in config.cell.peers}
    for name, own in configurations(config).items():
        row: dict[str, Any] = {"name": name, "url": addresses.get(name) or "-"}
        rows.append(row | await _counted(own))
    tables.say_all(rows, LIST, as_json=arguments.json, say=say)


async def planned(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the moves that balance the cells: what `carteiro move --plan` takes."""
    owners = {}
    for name, own in configurations(config).items():
        async with existing(own) as db:
            owners[name] = await db.scan(DUTIES, loads.owners)
    steps = loads.plan(owners)
    if arguments.json:
        rows = [
            {"email": one.email, "from": one.source, "to": one.target, "load": one.load}
            for one in steps
        ]
        tables.say_all(rows, PLAN, as_json=True, say=say)
        return
    for step in steps:
        say(f"{step.email} {step.source} {step.target}")


async def mapped(config: Config, arguments: Namespace, say: Say) -> None:
    """Write the maps into a folder, each file at once."""
    folder = Path(arguments.folder)
    for name, entries in (await _maps(config)).items():
        _write(folder / name, haproxy.map_text(entries))
        say(f"{folder / name}: {len(entries):,} entries")


async def pushed(config: Config, arguments: Namespace, say: Say) -> None:
    """Replace the maps of a running HAProxy, and its files, which it reads when it starts."""
    folder, runtime = Path(arguments.folder), Runtime(Path(arguments.socket))
    for name, entries in (await _maps(config)).items():
        _write(folder / name, haproxy.map_text(entries))
        await runtime.replace(str(folder / name), entries)
        say(f"{folder / name}: {len(entries):,} entries in HAProxy")


def configurations(config: Config) -> Mapping[str, Config]:
    """Return the configuration of each cell by name, this one first. Raise CannotStart."""
    _must_be_a_cell(config)
    others = [peer.name for peer in config.cell.peers if peer.name != config.cell.name]
    return {config.cell.name: config} | {name: peer_config(config, name) for name in others}


async def _counted(config: Config) -> dict[str, Any]:
    try:
        async with existing(config) as db:
            counts = await db.scan(DUTIES, loads.counts)
            sizes = await db.scan(DUTIES, measure)
    except (CannotStart, DatabaseUnavailable) as error:
        return {"state": str(error)}
    return {
        "owners": f"{counts.owners}", "stores": f"{counts.stores}",
        "eventsLastHour": f"{counts.hour}", "eventsLastDay": f"{counts.day}",
        "megabytes": f"{sizes.database // 1_000_000}", "state": "reachable",
    }  # fmt: skip


async def _maps(config: Config) -> Mapping[str, haproxy.Map]:
    async with _directory(config) as directory:
        try:
            return await haproxy.read_maps(config, directory)
        except DatabaseUnavailable as error:
            raise CannotStart(f"cell.directory: {error}") from None


@asynccontextmanager
async def _directory(config: Config) -> AsyncIterator[CellDirectory]:
    _must_be_a_cell(config)
    directory = directory_of(config, SystemClock(), Ids())
    if directory is None:
        raise CannotStart("cell.directory is empty; set it to the database that all cells share")
    try:
        yield directory
    finally:
        await directory.close()


def _must_be_a_cell(config: Config) -> None:
    if not config.cell.name:
        raise CannotStart("this installation is no cell; set cell.name")


def _write(path: Path, text: str) -> None:
    if not path.parent.is_dir():
        raise CannotStart(f"there is no folder {path.parent}")
    # HAProxy may start at any moment.
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, "ascii")
    new.replace(path)

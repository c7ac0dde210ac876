"""Creates what a cell needs from the configuration."""

from collections.abc import Mapping

from gateway.domain.cells.cells import Cells
from gateway.domain.cells.directory import CellDirectory
from gateway.domain.cells.registration import Registration
from gateway.server.config import Config
from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.ids import Ids

CONNECTIONS = 3


def addresses_of(config: Config) -> Mapping[str, str]:
    """Return the addresses of the other cells by name."""
    return {peer.name: peer.url for peer in config.cell.peers if peer.name != config.cell.name}


def directory_of(config: Config, clock: Clock, ids: Ids) -> CellDirectory | None:
    """Return the directory, which connects when it is used; None without one."""
    cell = config.cell
    if not cell.directory:
        return None
    # asyncpg is an extra: an SQLite installation does not need it.
    from outbox.database import postgres

    names = postgres.unopened(cell.directory, clock, ids, CONNECTIONS)
    return CellDirectory(names, cell.name)


def cells_of(config: Config, db: Database) -> Cells:
    """Return this cell and the others; from now on units reserve the names that they claim."""
    directory = directory_of(config, db.clock, db.ids)
    if directory is not None:
        db.reserve = directory.reserve
    return Cells(db, config.cell.name, addresses_of(config), directory)


def registration_of(config: Config, db: Database, cells: Cells) -> Registration | None:
    """Return the duties of this cell in the directory; None without one."""
    directory = cells.directory
    return None if directory is None else Registration(db, directory, config.cell.name)

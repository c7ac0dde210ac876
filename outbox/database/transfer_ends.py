"""Opens both ends of a transfer: a snapshot and a new database, or two databases that exist.

outbox.database.transfer and outbox.database.exclusive declare their interfaces.
"""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec

from outbox.database.exclusive import Exclusive
from outbox.database.transfer import Filling, Place, Snapshot, Sources
from outbox.errors import CannotStart


def snapshot(place: Place, own: Collection[str]) -> AbstractAsyncContextManager[Snapshot]:
    """Open a snapshot of those tables of `own` that exist. Raise CannotStart."""
    if place.engine == "sqlite":
        from outbox.database.sqlite.snapshot import open_snapshot

        return open_snapshot(place, own)
    _postgres()
    from outbox.database.postgres.snapshot import open_snapshot as open_postgres

    return open_postgres(place, own)


def filling(
    place: Place, sources: Sources, *, unowned: Collection[str] | None
) -> AbstractAsyncContextManager[Filling]:
    """Begin a new database at `place`; it has no schema yet.

    Raise CannotStart while a server uses the place, or when a table beside `unowned` has rows;
    None replaces whatever is there.
    """
    if place.engine == "sqlite":
        from outbox.database.sqlite.filling import open_filling

        return open_filling(place, sources, unowned=unowned)
    _postgres()
    from outbox.database.postgres.filling import open_filling as open_postgres

    return open_postgres(place, sources, unowned=unowned)


def exclusive(place: Place) -> AbstractAsyncContextManager[Exclusive]:
    """Open a database for the time of a block. Raise CannotStart while a server uses it."""
    if place.engine == "sqlite":
        from outbox.database.sqlite.exclusive import open_exclusive

        return open_exclusive(place)
    _postgres()
    from outbox.database.postgres.exclusive import open_exclusive as open_postgres

    return open_postgres(place)


def _postgres() -> None:
    """Raise CannotStart without the driver, which is an extra."""
    if find_spec("asyncpg") is None:
        raise CannotStart("PostgreSQL needs the package asyncpg; install it beside this program")

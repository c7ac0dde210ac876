"""Opens the database, checks and updates its schema, and reads the keys, for every command."""

from collections.abc import Sequence
from pathlib import Path

import gateway
import outbox
from gateway.server.config import Config
from outbox import database, private_files
from outbox.clock import Clock
from outbox.database import postgres_url
from outbox.database.database_urls import is_sqlite, typed_file, without_password
from outbox.database.database_urls import sqlite_file as file_of
from outbox.database.migrate import migrate, pending
from outbox.database.migration_files import read_migrations
from outbox.database.sqlite.refusals import must_be_a_file
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks import key_mark
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing, parse_keys

SOURCES = [
    ("outbox", Path(outbox.__path__[0]) / "database" / "migrations"),
    ("gateway", Path(gateway.__path__[0]) / "migrations"),
]
DATA = Path("data")
"""The default folder of our files."""
KEY_NAME = "carteiro.key"
IMAGES = "images"
"""The folder of uploaded images beside the SQLite file."""
CREATED_BY = "create it with `carteiro serve` or `carteiro user add`"


async def open_database(
    config: Config, clock: Clock, ids: Ids, *, serving: bool = False
) -> Database:
    """Open the configured database without changes. Raise CannotStart.

    The folder of an SQLite file is created only if it is the default one: any other may be a
    misspelt path.
    """
    settings = config.database
    must_have_folder(config)
    return await database.open(
        settings.url, clock=clock, ids=ids, serving=serving,
        synchronous=settings.synchronous, pool_size=settings.pool_size,
        direct_url=settings.direct_url, synchronous_commit=settings.synchronous_commit,
    )  # fmt: skip


async def bring_up_to_date(db: Database) -> list[str]:
    """Apply missing migrations and return their names. Raise CannotStart."""
    return await migrate(db, SOURCES)


def newest_schema() -> str:
    """Return the number of the newest migration of each component."""
    newest = (read_migrations(*source)[-1] for source in SOURCES)
    return ", ".join(f"{migration.component} {migration.number:04d}" for migration in newest)


def must_have_folder(config: Config) -> None:
    """Raise CannotStart when the folder of the SQLite file is missing and not the default one."""
    file = sqlite_file(config)
    if file is not None and file.parent != DATA and not file.parent.exists():
        raise CannotStart(
            f"cannot open the database {file}: there is no folder {file.parent}; create it, or "
            "correct database.url"
        )


def must_be_usable(config: Config) -> None:
    """Raise CannotStart when the path of the SQLite file leads to no file that can be served."""
    must_have_folder(config)
    if is_sqlite(config.database.url):
        must_be_a_file(typed_file(config.database.url))


def unused_parameters(config: Config) -> str | None:
    """Return a sentence about parameters of libpq in a URL that change nothing here, or None."""
    found = [
        f"{key}: {', '.join(unused)}"
        for key in ("url", "direct_url")
        if (url := getattr(config.database, key))
        and not is_sqlite(url)
        and (unused := postgres_url.parse(url).unused)
    ]
    return (
        f"these parameters change nothing here: database.{'; database.'.join(found)}"
        if found
        else None
    )


def must_exist(config: Config) -> None:
    """Raise CannotStart when there is no SQLite file."""
    file = sqlite_file(config)
    if file is not None and not file.exists():
        raise CannotStart(f"there is no database {file}; {CREATED_BY}, or correct database.url")


async def must_be_filled(db: Database) -> None:
    """Raise CannotStart when the schema is missing, older or newer."""
    if await _is_empty(db):
        raise CannotStart(f"the database is empty; {CREATED_BY}, or correct database.url")
    await migrate(db, SOURCES)


async def fill_if_empty(db: Database) -> None:
    """Create the schema in an empty database. Raise CannotStart when it is older or newer."""
    await _is_empty(db)
    await migrate(db, SOURCES)


async def _is_empty(db: Database) -> bool:
    """Return whether the schema is missing. Raise CannotStart when it is older.

    A command must not change the schema while a server uses it.
    """
    missing = await pending(db, SOURCES)
    if missing and not is_whole(missing):
        raise CannotStart(
            "the database schema is older than this program; run `carteiro migrate` or restart "
            "the server with this program first"
        )
    return bool(missing)


def is_whole(migrations: Sequence[object]) -> bool:
    """Return whether these are all migrations that there are: the database was empty before."""
    return len(migrations) == sum(len(read_migrations(*source)) for source in SOURCES)


def sqlite_file(config: Config) -> Path | None:
    """Return the SQLite file, behind symbolic links; None on PostgreSQL."""
    url = config.database.url
    return file_of(url) if is_sqlite(url) else None


def images_folder(config: Config) -> Path | None:
    """Return the folder of images: the configured one, or that beside the SQLite file."""
    if config.images.folder:
        return Path(config.images.folder)
    file = sqlite_file(config)
    return None if file is None else file.parent / IMAGES


def images_at(config: Config) -> str:
    """Return how to back up the files of images, for messages."""
    if config.images.s3_endpoint:
        return f"they are in the bucket {config.images.s3_bucket}"
    folder = images_folder(config)
    return "they have no folder here" if folder is None else f"copy the folder {folder} as well"


def key_file(config: Config) -> Path:
    """Return the path of the key file: as configured, else beside the SQLite file or in data/."""
    if config.secrets.key_file:
        return Path(config.secrets.key_file)
    file = sqlite_file(config)
    if file is None:
        return DATA / KEY_NAME
    beside = file.parent / KEY_NAME
    # Older releases made it beside the link.
    old = typed_file(config.database.url).parent / KEY_NAME
    return old if old.exists() and not beside.exists() else beside


def open_files(config: Config) -> str | None:
    """Return a warning about files of ours that other users can read, or None.

    Of the folders only our own, `data`, is checked; the administrator decides on the access to any
    other folder.
    """
    file = sqlite_file(config)
    own = [] if config.secrets.keys else [key_file(config)]
    if file is not None:
        own += [Path(f"{file}{ending}") for ending in ("", "-wal", "-shm", ".lock")]
    folders = dict.fromkeys(path.parent for path in own if path.parent == DATA)
    return private_files.warning([*folders, *own])


async def open_keys(config: Config, db: Database, ids: Ids) -> KeyRing:
    """Return the key ring of the database; on SQLite the first start creates it.

    Raise CannotStart, also for the keys of another database.
    """
    ring = await _ring(config, db, ids)
    await key_mark.must_belong(db, ring, keys_named(config), without_password(config.database.url))
    return ring


def keys_named(config: Config) -> str:
    """Return the name of the place of the keys, for messages."""
    return "secrets.keys" if config.secrets.keys else f"the key file {key_file(config)}"


async def _ring(config: Config, db: Database, ids: Ids) -> KeyRing:
    if config.secrets.keys:
        return parse_keys(config.secrets.keys, ids, "secrets.keys")
    path = key_file(config)
    if db.engine == "sqlite" and not path.exists():
        if await db.read(_needed):
            raise CannotStart(
                f"the key file {path} is missing; restore it from the backup, because only it can "
                "decrypt the secrets in the database"
            )
        write_key_file(path, ids, db.clock.wall())
    return read_key_file(path, ids)


async def _needed(tx: Tx) -> Sequence[str]:
    return await key_mark.needed(tx.all)

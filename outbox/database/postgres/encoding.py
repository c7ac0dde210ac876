"""Refuse a database whose encoding cannot store every character."""

from __future__ import annotations

from outbox.database.postgres.hosts import Connection
from outbox.errors import CannotStart

ENCODING = "UTF8"


async def must_be_utf_8(connection: Connection) -> None:
    """Raise CannotStart for another encoding; a server tells it to each connection."""
    encoding = connection.get_settings().server_encoding
    if encoding != ENCODING:
        database = await connection.fetchval("select current_database()")
        raise CannotStart(
            f"the PostgreSQL database {database} has the encoding {encoding}, which cannot store "
            "every character, such as emoji; create another one with `createdb --encoding=UTF8 "
            "--locale=C --template=template0 NAME`, bring the data there by `carteiro backup` and "
            "`carteiro restore`, and set database.url to it"
        )

"""The `carteiro` commands without a module of their own, and how commands open the database.

`say` prints a line on standard output; CannotStart and Refusal contain one line for a person.
"""

import os
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from msgspec import structs

from gateway.cli import tables
from gateway.domain.accounts import users
from gateway.server import startup
from gateway.server.cell_parts import directory_of
from gateway.server.config import FILE_VARIABLE, Config, sources
from gateway.server.database_connections import connections
from outbox.clock import SystemClock
from outbox.database.database_urls import without_password
from outbox.database.transaction import Database, Row
from outbox.errors import CannotStart
from outbox.ids import Ids

Say = Callable[[str], None]


async def serve(config: Config, arguments: Namespace, say: Say) -> None:
    """Run the server until a signal ends it."""
    from gateway.cli.processes import serve_as_member, serve_processes
    from gateway.server.processes.member import Member

    if arguments.port is not None:
        config = structs.replace(config, server=structs.replace(config.server, port=arguments.port))
    member = Member.inherited()
    if member is not None:
        await serve_as_member(member, arguments.role, say, arguments.parts)
    elif config.server.processes > 1:
        await serve_processes(config, arguments.role)
    else:
        # The server and its API are most of the program; other commands start without them.
        from gateway.cli.serve import serve as run_server

        await run_server(config, arguments.role, say, parts=arguments.parts)


async def migrate(config: Config, arguments: Namespace, say: Say) -> None:
    """Apply all missing migrations."""
    async with _open(config) as db:
        applied = await startup.bring_up_to_date(db)
    if startup.is_whole(applied):
        where = without_password(config.database.url)
        say(f"Created the database {where} with the schema {startup.newest_schema()}.")
        return
    for name in applied:
        say(f"applied {name}")
    say("The schema is up to date.")


async def check_config(config: Config, arguments: Namespace, say: Say) -> None:
    """Confirm that the configuration is valid, and print what it was read from.

    On PostgreSQL, also print the connections per node.
    """
    from gateway.server.telemetry.collector import must_be_installed

    must_be_installed(config.tracing)
    startup.must_be_usable(config)
    say("The configuration is valid.")
    if (unused := startup.unused_parameters(config)) is not None:
        say(f"Note: {unused}.")
    needed = connections(config)
    if needed:
        parts = ", ".join(f"{count} for {what}" for what, count in needed.items())
        say(f"Each node needs up to {sum(needed.values())} connections to PostgreSQL: {parts}.")
    for line in sources.told(arguments.config or os.environ.get(FILE_VARIABLE), os.environ):
        say(tables.inert(line))


async def openapi(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the OpenAPI document, indented."""
    from gateway.rest.document.openapi import document as openapi_document
    from gateway.rest.routes import ROUTES

    document = msgspec.json.encode(openapi_document(ROUTES))
    say(msgspec.json.format(document, indent=2).decode())


async def sdl(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the schema of the storefront GraphQL API."""
    from gateway.graphql.schema import sdl as text

    say(text().rstrip("\n"))


@asynccontextmanager
async def _open(config: Config) -> AsyncIterator[Database]:
    db = await startup.open_database(config, SystemClock(), Ids())
    directory = directory_of(config, db.clock, db.ids)
    if directory is not None:
        db.reserve = directory.reserve
    if (open_files := startup.open_files(config)) is not None:
        sys.stderr.write(f"carteiro: warning: {open_files}\n")
    try:
        yield db
    finally:
        if directory is not None:
            await directory.close()
        await db.close()


@asynccontextmanager
async def filled(config: Config) -> AsyncIterator[Database]:
    """Open the database and create the schema in an empty one. Raise CannotStart."""
    async with _open(config) as db:
        await startup.fill_if_empty(db)
        yield db


@asynccontextmanager
async def existing(config: Config) -> AsyncIterator[Database]:
    """Open a database that has a schema, for commands that need an account. Raise CannotStart."""
    startup.must_exist(config)
    async with _open(config) as db:
        await startup.must_be_filled(db)
        yield db


async def user_of(db: Database, email: str) -> Row:
    """Return the account with this email address. Raise CannotStart."""
    user = await db.read(users.by_email, email)
    if user is None:
        raise CannotStart(f"there is no account {email}; `carteiro user add` creates one")
    return user

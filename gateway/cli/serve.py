"""`carteiro serve`: opens the database, listens, welcomes, and shuts down in order."""

import asyncio
import base64
import gc
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from aiohttp import web

from gateway.app import build_app
from gateway.cli.language import spoken
from gateway.cli.port import cannot_listen, must_be_free, stop_on_signals
from gateway.domain.accounts import sessions
from gateway.server import startup
from gateway.server.app_keys import DB
from gateway.server.cell_parts import addresses_of
from gateway.server.config import Config
from gateway.server.database_connections import warn_of_few
from gateway.server.delivery import DELIVERY
from gateway.server.http.client_connections import Runner
from gateway.server.http.descriptors import fitted, raise_limit
from gateway.server.http.inherited_sockets import SharedSite
from gateway.server.http.monitoring_routes import EXPOSITION
from gateway.server.images import images
from gateway.server.installation import public_address
from gateway.server.parts import PARTS, Parts
from gateway.server.processes.member import MEMBER, Member
from gateway.server.program import Role, program_revision, program_version
from gateway.server.telemetry import logs
from gateway.server.telemetry.health import HEALTH
from gateway.server.telemetry.metrics import METRICS
from outbox.database.database_urls import without_password
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.upkeep.moved_owners import followed
from outbox.sending.ed25519 import SEED_BYTES
from outbox.webhooks import key_mark, signing_keys

T = TypeVar("T")
Say = Callable[[str], None]

NOTICE_SECONDS = 1.0
"""Time between the 503 of /readyz and the end of listening, for load balancers to react."""
CUT_SECONDS = 0.5
"""Time for handlers that still run at the end of the grace period."""
BACKLOG = 1024


async def serve(
    config: Config,
    role: Role,
    say: Say,
    member: Member | None = None,
    parts: Parts | None = None,
) -> None:
    """Run until SIGTERM, SIGINT or SIGHUP. `say` prints a line for people. Raise CannotStart.

    A `member` of several processes runs until its supervisor stops it or ends.
    """
    parts = parts or PARTS
    clock, ids = parts.clock, Ids()
    logs.configure(
        config.logging.level, clock=clock, node=ids.new(clock.wall()), version=program_version(),
        form=config.logging.format,
    )  # fmt: skip
    tune_interpreter()
    config = _within_descriptors(config)
    stopping = asyncio.Event()
    if member is None:
        await must_be_free(config)
        # A second signal exits at once. The next start rescues deliveries in flight.
        stop_on_signals(partial(os._exit, 1), stopping)
    else:
        # The service manager may send SIGTERM to each process, and so may the supervisor.
        stop_on_signals(lambda: None, stopping)
    if (unused := startup.unused_parameters(config)) is not None:
        logs.logger().warning("database_parameters_unused", text=unused)
    if (shared := images.warning(config)) is not None:
        logs.logger().warning("images_folder_shared", text=shared)
    db = await startup.open_database(config, clock, ids, serving=True)
    try:
        applied = await startup.bring_up_to_date(db)
        if startup.is_whole(applied):
            where = without_password(config.database.url)
            logs.logger().info("database_created", database=where, schema=startup.newest_schema())
            for name in applied:
                logs.logger().debug("migration_applied", name=name)
        elif applied:
            logs.logger().info("migrated", applied=applied)
        keyring = await startup.open_keys(config, db, ids)
        await key_mark.tell_missing(db, keyring)
        await db.write(signing_keys.ensure, keyring, ids.token(SEED_BYTES))
        if (open_files := startup.open_files(config)) is not None:
            logs.logger().warning("files_open_to_others", text=open_files)
        async with followed(db, addresses_of(config)):
            app = build_app(config, db, keyring, role=role, member=member, parts=parts)
            await _listen(app, config, role, say, stopping)
    finally:
        await db.close()
    logs.logger().info("stopped")


def tune_interpreter() -> None:
    """Tune thread switching and garbage collection of this process."""
    # Beside a busy thread the database writer waited for most of the default 5 ms.
    sys.setswitchinterval(0.0005)
    # Little garbage here is cyclic, and the search for it took 1/15 of a delivery's time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _within_descriptors(config: Config) -> Config:
    """Raise the limit of file descriptors, and fit the bounds into it."""
    descriptors = raise_limit()
    fits = fitted(config, descriptors)
    if fits is not config:
        logs.logger().warning(
            "few_descriptors",
            descriptors=descriptors,
            slots=fits.delivery.slots,
            connections=fits.limits.connections,
            connections_per_address=fits.limits.connections_per_address,
        )
    return fits


async def _listen(
    app: web.Application, config: Config, role: Role, say: Say, stopping: asyncio.Event
) -> None:
    server = config.server
    metrics = app[METRICS]
    grace = max(server.shutdown_seconds - NOTICE_SECONDS - 2.0, 1.0)
    runner = Runner(app, config.limits, lambda why: metrics.rejected("api", why), CUT_SECONDS)
    await runner.setup()
    try:
        member = app[MEMBER]
        site: web.TCPSite | SharedSite
        if member is None:
            site = web.TCPSite(runner, server.host, server.port, backlog=BACKLOG)
        else:
            assert runner.server is not None
            # With the role worker all processes deliver, and none answers clients.
            health = app[HEALTH]
            site = SharedSite(
                runner.server,
                member.sockets,
                BACKLOG,
                lambda: role == "all" and health.delivers,
            )
        try:
            await site.start()
        except OSError as error:
            raise CannotStart(cannot_listen(config, error)) from None
        metrics.watch_connections(runner.census)
        address = public_address(config, site.port)
        say_ready = partial(_say_ready, config, app[DB], address, role, say)
        logs.logger().info(
            "listening", host=server.host, port=site.port, role=role,
            revision=program_revision(),
        )  # fmt: skip
        if member is None:
            await say_ready()
            await stopping.wait()
        else:
            await member.serve(say_ready, stopping)
        logs.logger().info("stopping", grace_s=server.shutdown_seconds)
        app[HEALTH].draining = True
        if member is not None:
            await member.tell("leaving")
        delivery = app[DELIVERY]
        drained = asyncio.create_task(delivery.drain(grace)) if delivery is not None else None
        await asyncio.sleep(NOTICE_SECONDS)
        await site.stop()
        await runner.finish(grace)
        if drained is not None:
            await drained
        if member is not None:
            await member.tell("last", await app[EXPOSITION].text())
    finally:
        await runner.cleanup()


async def _say_ready(config: Config, db: Database, address: str, role: Role, say: Say) -> None:
    await warn_of_few(config, db)
    await greet(db, address, role, say)


async def greet(db: Database, address: str, role: Role, say: Say) -> None:
    """Say the address of a server that is ready, and the link to its first account."""
    if role == "worker":
        lines = [f"Carteiro {program_version()} sends deliveries; health and metrics at {address}"]
    else:
        lines = [f"Carteiro {program_version()} is ready; console at {address}/console"]
        token = base64.urlsafe_b64encode(db.ids.token(32)).rstrip(b"=").decode()
        if await db.write(sessions.offer_first_account, token):
            t = spoken()
            lines += [
                # Apart from the lines of the log, which a terminal shows before and after it.
                f"\n{t('cli.first_link')}",
                f"  {address}/console/first-account?token={token}",
                t("cli.first_command"),
                f"  {_program()} user add EMAIL --name NAME\n",
            ]
    welcome(lines, say)


def welcome(lines: Sequence[str], say: Say) -> None:
    """Say the lines as far as the output takes them; a server serves without it, too."""
    try:
        for line in lines:
            try:
                say(line)
            except UnicodeEncodeError:
                # Letters without their accents, where the output has no others.
                say(unicodedata.normalize("NFKD", line).encode("ascii", "ignore").decode())
    except (OSError, ValueError) as error:
        logs.logger().warning(
            "welcome_not_shown",
            error=str(error),
            fix="create the first account with: carteiro user add EMAIL --name NAME",
        )


def _program() -> str:
    """Return the command that runs this program, with its path if it is not on PATH."""
    called = Path(sys.argv[0])
    if called.name == "carteiro" and shutil.which("carteiro") is None:
        return str(called)
    return "carteiro"

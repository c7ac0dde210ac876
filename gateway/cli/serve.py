"""`carteiro serve`: open, listen, say where, and go down in good order."""

import asyncio
import base64
import errno
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aiohttp import web

from gateway.app import Role, build_app, program_version
from gateway.domain.accounts import sessions
from gateway.server import keys, startup
from gateway.server.config import Config
from gateway.server.connections import Runner
from gateway.server.telemetry import logs
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids

T = TypeVar("T")
Say = Callable[[str], None]

NOTICE_SECONDS = 1.0
"""Between /readyz turning 503 and the end of listening, so that balancers send nothing more."""
CUT_SECONDS = 0.5
"""For handlers that are still at it when the grace is over."""
BACKLOG = 1024
ANY = {"": "localhost", "0.0.0.0": "localhost", "::": "localhost"}  # noqa: S104 - only shown


async def serve(config: Config, role: Role, say: Say) -> None:
    """Run until SIGTERM or SIGINT. `say` prints a line for people. Raises CannotStart."""
    clock, ids = SystemClock(), Ids()
    logs.configure(
        config.logging.level, clock=clock, node=ids.new(clock.wall()), version=program_version()
    )
    tune_interpreter()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, stopping)
    db = await startup.open_database(config, clock, ids, serving=True)
    try:
        applied = await startup.bring_up_to_date(db)
        if applied:
            logs.logger().info("migrated", applied=applied)
        keyring = await startup.open_keys(config, db, ids)
        if (open_files := startup.open_files(config)) is not None:
            logs.logger().warning("files_open_to_others", text=open_files)
        app = build_app(config, db, keyring, role=role)
        await _listen(app, config, role, say, stopping)
    finally:
        await db.close()
    logs.logger().info("stopped")


def tune_interpreter() -> None:
    """Settings of this process that the work in it asks for."""
    # With a busy thread beside it the database's writer waited most of the default 5 ms.
    sys.setswitchinterval(0.0005)
    # Hardly any garbage here is cyclic, and looking for it took a fifteenth of a delivery.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def _listen(
    app: web.Application, config: Config, role: Role, say: Say, stopping: asyncio.Event
) -> None:
    server = config.server
    metrics = app[keys.METRICS]
    grace = max(server.shutdown_seconds - NOTICE_SECONDS - 2.0, 1.0)
    runner = Runner(app, config.limits, lambda why: metrics.rejected("api", why), CUT_SECONDS)
    await runner.setup()
    try:
        site = web.TCPSite(runner, server.host or None, server.port, backlog=BACKLOG)
        try:
            await site.start()
        except OSError as error:
            raise CannotStart(_cannot_listen(config, error)) from None
        metrics.watch_connections(runner.census)
        address = public_address(config, runner.addresses[0][1])
        await _greet(app[keys.DB], address, role, say)
        logs.logger().info("listening", host=server.host, port=runner.addresses[0][1], role=role)
        await stopping.wait()
        logs.logger().info("stopping", grace_s=server.shutdown_seconds)
        app[keys.HEALTH].draining = True
        delivery = app[keys.DELIVERY]
        drained = asyncio.create_task(delivery.drain(grace)) if delivery is not None else None
        await asyncio.sleep(NOTICE_SECONDS)
        await site.stop()
        await runner.finish(grace)
        if drained is not None:
            await drained
    finally:
        await runner.cleanup()


def public_address(config: Config, port: int) -> str:
    """Where people find this server: `[server] public_url`, else host and port."""
    if config.server.public_url:
        return config.server.public_url.rstrip("/")
    host = ANY.get(config.server.host, config.server.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _greet(db: Database, address: str, role: Role, say: Say) -> None:
    if role == "worker":
        say(f"Carteiro {program_version()} delivers; health and metrics at {address}")
        return
    say(f"Carteiro {program_version()} is ready; console at {address}/console")
    token = base64.urlsafe_b64encode(db.ids.token(32)).rstrip(b"=").decode()
    if await db.write(sessions.offer_first_account, token):
        say("Create the first account by this link, which works once, within a day:")
        say(f"  {address}/console/first-account?token={token}")
        say("or by this command, with the same configuration:")
        say(f"  {_program()} user add EMAIL --name NAME")


def _program() -> str:
    """How this program is called here: by its path where it is not on the search path."""
    called = Path(sys.argv[0])
    if called.name == "carteiro" and shutil.which("carteiro") is None:
        return str(called)
    return "carteiro"


def _cannot_listen(config: Config, error: OSError) -> str:
    server = config.server
    where = f"{server.host or '*'}:{server.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is taken by another program; choose another by --port or server.port"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no right to listen on {where}; use a port from 1024 up"
    return f"cannot listen on {where}: {error.strerror or error}"


def _stop(stopping: asyncio.Event) -> None:
    if stopping.is_set():
        # Told twice: go now. What is in flight is rescued at the next start, as after a crash.
        os._exit(1)
    stopping.set()

"""Creates every part of the product, connects the parts, and closes them in reverse order.

`build_app` returns an aiohttp application for an open database; gateway.cli.serve opens the
database and listens. It is one module because all parts meet here.
"""

import asyncio
import platform
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cache

import msgspec
from aiohttp import web

from gateway.console.crm.printing import WRITING
from gateway.console.layout.pages import set_up
from gateway.console.routes import add_console
from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.credentials import Credentials
from gateway.domain.accounts.sign_in import SignIn
from gateway.domain.storefront.stores.directory import Directory
from gateway.graphql import responses as graphql
from gateway.graphql.documents import Documents
from gateway.graphql.routes import add_graphql
from gateway.graphql.schema import schema
from gateway.graphql.view import DOCUMENTS
from gateway.mcp.routes import add_mcp
from gateway.mcp.routes import refuse as refuse_mcp
from gateway.records.errors import Refusal
from gateway.rest import errors as rest
from gateway.rest.document.page import ROUTE_TABLE
from gateway.rest.first_pages import FIRST_PAGES, FirstPages
from gateway.rest.routes import ROUTES, add_routes
from gateway.server import startup
from gateway.server.app_keys import (
    CELLS,
    CLOCK,
    CONFIG,
    CREDENTIALS,
    DB,
    DIRECTORY,
    DOCTOR,
    GUARD,
    IDS,
    KEYRING,
    PASSWORDS,
    SIGN_IN,
)
from gateway.server.cells import cells_of, registration_of
from gateway.server.config import Config
from gateway.server.delivery import DELIVERY, Delivery, doctor_of, rules_of
from gateway.server.http import answers
from gateway.server.http.address import public_address
from gateway.server.http.bodies import READING, UPLOADING
from gateway.server.http.connections import FRAME
from gateway.server.http.middleware import Frame, Refuse, Watch, surface_of
from gateway.server.http.probes import EXPOSITION, Exposition, add_probes
from gateway.server.http.proxies import Proxies
from gateway.server.http.public_keys import PUBLIC_KEYS, PublicKeys, add_public_keys
from gateway.server.http.rate_limits import LIMITS, RateLimits
from gateway.server.http.usual_addresses import add_usual_addresses
from gateway.server.images.images import IMAGES, Images, add_images
from gateway.server.parts import PARTS, Parts
from gateway.server.processes.channel import Gone
from gateway.server.processes.member import MEMBER, Member
from gateway.server.program import Role, program_revision, program_version
from gateway.server.storefront import STOREFRONT, build_storefront, lookups_of, reserve_hostnames
from gateway.server.telemetry import logs
from gateway.server.telemetry.collector import collector
from gateway.server.telemetry.health import HEALTH, Health
from gateway.server.telemetry.metrics import METRICS, Metrics
from gateway.server.telemetry.trace_context import Marks
from gateway.server.telemetry.traced import TracedDatabase
from gateway.server.upkeep.duties import Upkeep
from gateway.server.upkeep.fetching import Fetcher
from gateway.server.upkeep.mailer import Mailer
from outbox.database import sqlite
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable
from outbox.sending.guard import Guard
from outbox.webhooks.secrets import KeyRing


def build_app(
    config: Config,
    db: Database,
    keyring: KeyRing,
    *,
    role: Role = "all",
    member: Member | None = None,
    parts: Parts = PARTS,
) -> web.Application:
    """Return the application of `role` on an open, migrated database; call it on the event loop.

    A `member` of several processes does background work only when its supervisor says so.
    The caller closes the database after the cleanup of the application.
    """
    clock, ids = db.clock, db.ids
    metrics = Metrics(
        clock=clock, webhook_series=config.metrics.webhook_series,
        build=build_info(db, public_address(config, config.server.port)),
    )  # fmt: skip
    metrics.watch_pool(db.census)
    metrics.watch_key(keyring.newest_key_at, lambda: keyring.refused)
    db.observer = metrics
    cells = cells_of(config, db)
    marks = Marks(clock, ids, config.tracing.sample)
    traces = collector(config.tracing, config.service.name, db, marks, metrics)
    spans = None
    if traces is not None:
        spans = traces.spans
        db = TracedDatabase(db, spans)
    guard = Guard(rules_of(config.egress), clock)
    credentials = Credentials(db, metrics)
    passwords = parts.passwords(clock=clock, ids=ids, observer=metrics)
    delivery = None
    if role != "api":
        delivery = Delivery(config, db, keyring, guard, spans, parts)
    doctor = doctor_of(config, guard, clock, ids)
    exposition = Exposition(metrics.registry, config.metrics, clock, config.server.public_url)
    fetcher = Fetcher(guard)
    mailer = Mailer(
        db,
        config.mail,
        metrics.mail,
        service=config.service.name,
        site=config.server.public_url,
        mark=cells.marked,
    )
    images = Images(config, db)
    upkeep = Upkeep(
        db, metrics, credentials, startup.sqlite_file(config), config.retention, mailer,
        config.database.disk_bytes, parts, keyring, registration_of(config, db, cells),
        lookups_of(config, db), images.sweep,
    )  # fmt: skip
    health = Health(db, metrics, delivers=False, file=startup.sqlite_file(config))
    proxies = Proxies(config.server.trusted_proxies)
    app = web.Application(client_max_size=config.limits.body_bytes)
    watch = Watch(clock, marks, metrics, health, spans)
    app[FRAME] = Frame(app, config, watch, proxies, refuse).handle
    app[CONFIG] = config
    app[CLOCK] = clock
    app[IDS] = ids
    app[DB] = db
    app[KEYRING] = keyring
    app[GUARD] = guard
    app[METRICS] = metrics
    app[answers.BUILDING] = asyncio.Semaphore(answers.BUILDERS)
    app[WRITING] = asyncio.Semaphore(1)
    app[READING], app[UPLOADING] = asyncio.Lock(), Counter[str]()
    app[answers.ANSWERS] = answers.budget(config.limits)
    app[FIRST_PAGES] = FirstPages()
    app[EXPOSITION] = exposition
    app[HEALTH] = health
    keep: NewCounterStore = OwnCounters if member is None else member.levels.of
    app[LIMITS] = RateLimits(config.limits, clock, metrics, keep, config.server.processes)
    app[MEMBER] = member
    app[CREDENTIALS] = credentials
    app[PASSWORDS] = passwords
    app[SIGN_IN] = SignIn(db, passwords, metrics, keep)
    storefront = build_storefront(db, keyring, passwords, fetcher, mailer, cells, config, keep)
    app[STOREFRONT] = storefront
    app[CELLS] = cells
    app[IMAGES] = images
    proven = config.storefront.verify_hostnames
    app[DIRECTORY] = directory = Directory(db, cells, proven=proven)
    app[DELIVERY] = delivery
    app[DOCTOR] = doctor

    async def work() -> None:
        try:
            await upkeep.start_duties()
        finally:
            if delivery is not None and not health.draining:
                metrics.ticked = clock.monotonic()
                health.delivers = True
                delivery.start()

    async def rest() -> None:
        health.delivers = False
        await upkeep.stop_duties()
        if delivery is not None and not health.draining:
            await delivery.drain(config.server.shutdown_seconds / 2)

    async def lifetime(_: web.Application) -> AsyncIterator[None]:
        if traces is not None:
            traces.start()
        unwatch = db.on_change(directory.committed)
        unkeep = db.on_change(app[FIRST_PAGES].committed)
        await reserve_hostnames(config, db)
        storefront.looks.start()
        await upkeep.start()
        if member is None:
            await work()
        else:
            answer_supervisor(member, work, rest, health, exposition, delivery)
        yield
        if delivery is not None:
            await delivery.drain(config.server.shutdown_seconds / 2)
        await storefront.looks.settle_all()
        await upkeep.stop()
        unwatch()
        unkeep()
        await doctor.close()
        await cells.close()
        await fetcher.close()
        await images.close()
        await guard.close()
        passwords.close()
        exposition.close()
        if traces is not None:
            await traces.close()

    app.cleanup_ctx.append(lifetime)
    if role != "worker":
        app[ROUTE_TABLE] = ROUTES
        app[DOCUMENTS] = Documents(schema())
        app[PUBLIC_KEYS] = PublicKeys(db, clock)
        set_up(app)
    for resource in resources(with_doors=role != "worker"):
        app.router.register_resource(resource)
    return app


@cache
def resources(*, with_doors: bool) -> tuple[web.AbstractResource, ...]:
    """Return the routes by path; all applications of a process share them."""
    router = web.UrlDispatcher()
    add_probes(router)
    if with_doors:
        add_public_keys(router)
        add_images(router)
        add_usual_addresses(router)
        add_routes(router)
        add_graphql(router)
        add_mcp(router)
        add_console(router)
    return tuple(router.resources())


def answer_supervisor(
    member: Member,
    work: Callable[[], Awaitable[None]],
    rest: Callable[[], Awaitable[None]],
    health: Health,
    exposition: Exposition,
    delivery: Delivery | None,
) -> None:
    """Answer the supervisor's calls with the parts of this process."""

    changes: set[asyncio.Task[None]] = set()
    turn = asyncio.Lock()

    def change(to: Callable[[], Awaitable[None]]) -> None:
        # In turn, but not awaited: the first reading of a large table and the end of the sends
        # take longer than the supervisor waits.
        task = asyncio.create_task(changed(to), name="background-work")
        changes.add(task)
        task.add_done_callback(changes.discard)

    async def changed(to: Callable[[], Awaitable[None]]) -> None:
        async with turn:
            await to()

    async def begin() -> None:
        try:
            await work()
        except DatabaseUnavailable as error:
            # Drain and duties have started all the same; the next reading is due in seconds.
            logs.logger().warning("reading_put_off", error=str(error))

    async def working(_: bytes) -> bytes:
        if health.draining:
            raise Gone
        change(begin)
        return b""

    async def resting(_: bytes) -> bytes:
        change(rest)
        return b""

    async def alive(_: bytes) -> bytes:
        return delivery.node_id.encode() if delivery is not None else b""

    async def take_over(node_id: bytes) -> bytes:
        if delivery is not None:
            await delivery.take_over(node_id.decode())
        return b""

    async def readiness(_: bytes) -> bytes:
        return msgspec.json.encode(await health.faults())

    async def counted(_: bytes) -> bytes:
        return await exposition.text()

    member.handlers |= {
        "work": working, "rest": resting, "alive": alive, "take_over": take_over,
        "readiness": readiness, "metrics": counted,
    }  # fmt: skip


def refuse(refusal: Refusal, request: web.Request, status: int | None = None) -> web.StreamResponse:
    """Return the response of a refusal that no door has rendered, as the request's door does."""
    refused = REFUSE.get(surface_of(request.path), rest.refuse)
    return refused(refusal, request, status)


REFUSE: Mapping[str, Refuse] = {"graphql": graphql.refuse, "mcp": refuse_mcp}


def build_info(db: Database, console: str) -> dict[str, str]:
    """Return the labels of `app_build_info`; `console` is the address to which dashboards link."""
    return {
        "version": program_version(),
        "revision": program_revision(),
        "python": platform.python_version(),
        "sqlite": sqlite.VERSION,
        "backend": db.engine,
        "console": console,
    }

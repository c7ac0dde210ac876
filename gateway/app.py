"""Creates every part of the product, connects the parts, and closes them in reverse order.

`build_app` returns an aiohttp application for an open database; gateway.cli.serve opens the
database and listens. It is one module because all parts meet here.
"""

import asyncio
import platform
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache

import msgspec
from aiohttp import web

from gateway.console.layout.pages import set_up
from gateway.console.routes import add_console
from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.credentials import Credentials
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignIn
from gateway.domain.cells.cells import Cells
from gateway.domain.storefront.sign_in.idp_keys import Providers
from gateway.domain.storefront.stores.store_directory import Directory
from gateway.graphql import view as graphql
from gateway.graphql.graphiql import GRAPHIQL
from gateway.graphql.parsed_documents import Documents
from gateway.graphql.schema import schema
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
from gateway.server.cell_parts import cells_of, registration_of
from gateway.server.config import Config
from gateway.server.delivery import DELIVERY, Delivery, doctor_of, rules_of
from gateway.server.http import account_turns, answers
from gateway.server.http.bodies import UPLOADING
from gateway.server.http.client_address import Proxies
from gateway.server.http.client_connections import FRAME
from gateway.server.http.middleware import Frame, Refuse, Watch, surface_of
from gateway.server.http.monitoring_routes import EXPOSITION, Exposition, add_probes
from gateway.server.http.public_keys import PUBLIC_KEYS, PublicKeys, add_public_keys
from gateway.server.http.rate_limits import LIMITS, RateLimits
from gateway.server.http.usual_addresses import add_usual_addresses
from gateway.server.images.images import IMAGES, Images, add_images
from gateway.server.installation import introduce, public_address
from gateway.server.parts import PARTS, Parts
from gateway.server.processes.channel import Gone
from gateway.server.processes.member import MEMBER, Member
from gateway.server.program import Role, program_revision, program_version
from gateway.server.storefront import STOREFRONT, build_storefront, lookups_of, reserve_hostnames
from gateway.server.telemetry import logs
from gateway.server.telemetry.collector import Collector, collector
from gateway.server.telemetry.health import HEALTH, Health
from gateway.server.telemetry.metrics import METRICS, Metrics
from gateway.server.telemetry.trace_context import Marks
from gateway.server.telemetry.traced import TracedDatabase
from gateway.server.upkeep.fetching import Fetcher
from gateway.server.upkeep.mailer import Mailer
from gateway.server.upkeep.web_duties import Further, Upkeep
from outbox.clock import Clock
from outbox.database import sqlite
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable
from outbox.sending.egress_guard import Guard
from outbox.webhooks.secrets import KeyRing


@dataclass(frozen=True, slots=True)
class Watched:
    """The database as traces see it, and what watches all parts."""

    db: Database
    metrics: Metrics
    health: Health
    exposition: Exposition
    watch: Watch
    traces: Collector | None


@dataclass(frozen=True, slots=True)
class Shared:
    """What requests and the work in the background both use."""

    guard: Guard
    credentials: Credentials
    passwords: Passwords
    cells: Cells
    fetcher: Fetcher
    mailer: Mailer
    images: Images


@dataclass(frozen=True, slots=True)
class Work:
    """The work in the background: duties, and deliveries where the role has them."""

    upkeep: Upkeep
    delivery: Delivery | None
    clock: Clock
    health: Health
    metrics: Metrics
    drain_seconds: float

    async def begin(self) -> None:
        """Begin what one process of the node does for all."""
        try:
            await self.upkeep.start_duties()
        finally:
            if self.delivery is not None and not self.health.draining:
                self.metrics.ticked = self.clock.monotonic()
                self.health.delivers = True
                self.delivery.start()

    async def rest(self) -> None:
        """End it, because another process begins."""
        self.health.delivers = False
        await self.upkeep.stop_duties()
        if not self.health.draining:
            await self.drain()

    async def drain(self) -> None:
        """Finish the sends that have begun."""
        if self.delivery is not None:
            await self.delivery.drain(self.drain_seconds)


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
    stack = AsyncExitStack()
    watched = build_watched(config, db, keyring, stack)
    shared = build_shared(config, watched, parts, stack)
    work = build_work(config, watched, shared, keyring, role, parts)
    db, clock, cells = watched.db, db.clock, shared.cells
    app = web.Application(client_max_size=config.limits.body_bytes)
    app[FRAME] = Frame(
        app, config, watched.watch, Proxies(config.server.trusted_proxies), refuse
    ).handle
    introduce(app, config)
    app[GRAPHIQL] = config.storefront.graphiql
    app[CLOCK] = clock
    app[IDS] = db.ids
    app[DB] = db
    app[KEYRING] = keyring
    app[GUARD] = shared.guard
    app[METRICS] = watched.metrics
    account_turns.set_up(app)
    app[UPLOADING] = Counter[str]()
    app[answers.ANSWERS] = answers.budget(config.limits)
    app[FIRST_PAGES] = first_pages = FirstPages()
    app[EXPOSITION] = watched.exposition
    app[HEALTH] = watched.health
    keep: NewCounterStore = OwnCounters if member is None else member.levels.of
    app[LIMITS] = RateLimits(config.limits, clock, watched.metrics, keep, config.server.processes)
    app[MEMBER] = member
    app[CREDENTIALS] = shared.credentials
    app[PASSWORDS] = shared.passwords
    app[SIGN_IN] = SignIn(db, shared.passwords, watched.metrics, keep)
    app[STOREFRONT] = storefront = build_storefront(
        config, db, keyring, passwords=shared.passwords,
        providers=Providers(clock, shared.fetcher), cells=cells, keep=keep,
    )  # fmt: skip
    app[CELLS] = cells
    app[IMAGES] = shared.images
    proven = config.storefront.verify_hostnames
    app[DIRECTORY] = directory = Directory(db, cells, proven=proven)
    app[DELIVERY] = work.delivery
    app[DOCTOR] = doctor = doctor_of(config, shared.guard, clock, db.ids)
    stack.push_async_callback(doctor.close)

    async def lifetime(_: web.Application) -> AsyncIterator[None]:
        if watched.traces is not None:
            watched.traces.start()
        stack.callback(db.on_change(first_pages.committed))
        stack.callback(db.on_change(directory.committed))
        await reserve_hostnames(config, db)
        stack.push_async_callback(work.upkeep.stop)
        storefront.looks.start()
        stack.push_async_callback(storefront.looks.settle_all)
        await work.upkeep.start()
        stack.push_async_callback(work.drain)
        if member is None:
            await work.begin()
        else:
            answer_supervisor(member, work, watched)
        yield
        await stack.aclose()

    app.cleanup_ctx.append(lifetime)
    if role != "worker":
        app[ROUTE_TABLE] = ROUTES
        app[graphql.DOCUMENTS] = Documents(schema())
        app[PUBLIC_KEYS] = PublicKeys(db, clock)
        set_up(app)
    for resource in resources(with_doors=role != "worker"):
        app.router.register_resource(resource)
    return app


def build_watched(config: Config, db: Database, keyring: KeyRing, stack: AsyncExitStack) -> Watched:
    """Return what watches all parts; `stack` closes it last."""
    clock = db.clock
    metrics = Metrics(
        clock=clock,
        webhook_series=config.metrics.webhook_series,
        build=build_info(db, public_address(config, config.server.port)),
    )
    metrics.watch_pool(db.census)
    metrics.watch_key(keyring.newest_key_at, lambda: keyring.refused)
    db.observer = metrics
    marks = Marks(clock, db.ids, config.tracing.sample)
    traces = collector(config.tracing, config.service.name, db, marks, metrics)
    spans = None
    if traces is not None:
        spans = traces.spans
        db = TracedDatabase(db, spans)
        stack.push_async_callback(traces.close)
    exposition = Exposition(metrics.registry, config.metrics, clock, config.server.public_url)
    stack.callback(exposition.close)
    health = Health(db, metrics, delivers=False, file=startup.sqlite_file(config))
    watch = Watch(clock, marks, metrics, health, spans)
    return Watched(db, metrics, health, exposition, watch, traces)


def build_shared(config: Config, watched: Watched, parts: Parts, stack: AsyncExitStack) -> Shared:
    """Return what requests and the work in the background use; `stack` closes it."""
    db, metrics = watched.db, watched.metrics
    passwords = parts.passwords(clock=db.clock, ids=db.ids, observer=metrics)
    stack.callback(passwords.close)
    guard = Guard(rules_of(config.egress), db.clock)
    stack.push_async_callback(guard.close)
    images = Images(config, db)
    stack.push_async_callback(images.close)
    fetcher = Fetcher(guard)
    stack.push_async_callback(fetcher.close)
    cells = cells_of(config, db)
    stack.push_async_callback(cells.close)
    mailer = Mailer(
        db, config.mail, metrics.mail, service=config.service.name, site=config.server.public_url,
        mark=cells.marked,
    )  # fmt: skip
    return Shared(
        guard=guard,
        credentials=Credentials(db, metrics),
        passwords=passwords,
        cells=cells,
        fetcher=fetcher,
        mailer=mailer,
        images=images,
    )


def build_work(
    config: Config, watched: Watched, shared: Shared, keyring: KeyRing, role: Role, parts: Parts
) -> Work:
    """Return the work in the background, which begins later."""
    db, metrics = watched.db, watched.metrics
    delivery = None
    if role != "api":
        delivery = Delivery(config, db, keyring, shared.guard, watched.watch.spans, parts)
    further = Further(
        ring=keyring,
        mailer=shared.mailer,
        registration=registration_of(config, db, shared.cells),
        lookups=lookups_of(config, db),
        sweep_images=shared.images.sweep,
        disk_bytes=config.database.disk_bytes,
    )
    file = startup.sqlite_file(config)
    upkeep = Upkeep(
        db, metrics, shared.credentials, file, config.retention, further=further, parts=parts
    )
    grace = config.server.shutdown_seconds / 2
    return Work(upkeep, delivery, db.clock, watched.health, metrics, grace)


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
        graphql.add_graphql(router)
        add_mcp(router)
        add_console(router)
    return tuple(router.resources())


def answer_supervisor(member: Member, work: Work, watched: Watched) -> None:
    """Answer the supervisor's calls with the parts of this process."""
    health, delivery = watched.health, work.delivery
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
            await work.begin()
        except DatabaseUnavailable as error:
            # Drain and duties have started all the same; the next reading is due in seconds.
            logs.logger().warning("reading_put_off", error=str(error))

    async def working(_: bytes) -> bytes:
        if health.draining:
            raise Gone
        change(begin)
        return b""

    async def resting(_: bytes) -> bytes:
        change(work.rest)
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
        return await watched.exposition.text()

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

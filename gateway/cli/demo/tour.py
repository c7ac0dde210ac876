"""The demo from start to end: sets up account, webhooks and shop, writes, shows, shuts down.

It is one module because a signal means something else in each phase of it.
"""

import asyncio
import contextlib
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp

from gateway.cli.demo import demo_goods, table
from gateway.cli.demo.breaking.acts import Scene
from gateway.cli.demo.breaking.breaking_tour import broken, each_once, with_page
from gateway.cli.demo.breaking.moved_clock import MovedClock
from gateway.cli.demo.demo_gateway import SERVE, Account, Console, DemoFault, Gateway
from gateway.cli.demo.demo_goods import Owner
from gateway.cli.demo.demo_writer import Feed, Writer
from gateway.cli.demo.judgement import Judge, Judgement
from gateway.cli.demo.receiver import Inbox, Receiver
from gateway.cli.demo.shop import Shop
from gateway.cli.language import spoken
from outbox.clock import Clock, SystemClock
from outbox.ids import Ids

ONCE_WRITES = 60
ONCE_SECONDS = 60.0
LAST_SECONDS = 20.0
"""Time for the last deliveries after the end of the writes."""
PAUSE = 0.2
"""Seconds between writes, and between updates of the table."""
CONTACTS = ("contact.created", "contact.updated", "contact.deleted")
COMPANIES = ("company.created", "company.updated", "company.deleted")
SALES = (
    "product.created", "product.updated", "deal.created", "deal.updated",
    "invoice.created", "invoice.updated", "invoice.paid",
)  # fmt: skip


def run(folder: Path | None, *, once: bool, port: int = 0, breaking: bool = False) -> int:
    """Run the demo in `folder` (None: a temporary one) and return the exit status.

    With `once`, make a fixed number of writes. Otherwise run until Ctrl-C or SIGTERM; a second
    Ctrl-C does not wait for the last deliveries. The status is 1 when an event is
    missing, repeated or badly signed, else 0. With `breaking`, a page breaks the demo, or with
    `once` each fault is made once; then repeats are no fault.
    """
    try:
        with contextlib.ExitStack() as stack:
            if folder is None:
                temporary = tempfile.TemporaryDirectory(prefix="carteiro-demo-")
                folder = Path(stack.enter_context(temporary))
            folder.mkdir(parents=True, exist_ok=True)
            return asyncio.run(_until_stopped(folder.resolve(), once, port, breaking))
    except (DemoFault, OSError) as fault:
        sys.stderr.write(f"carteiro demo: {fault}\n")
        return 1


class _Stop:
    """A request to stop; the effect of a signal depends on the phase of the demo."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.watching = False
        """Whether the loop checks `requested`; before that a signal cancels the tour."""
        self.patience: asyncio.Timeout | None = None
        """The timeout for the last deliveries; a second signal ends it."""
        self.hurried = False

    def wait(self, patience: asyncio.Timeout | None) -> None:
        """Let a second signal end this timeout."""
        self.patience = patience


@dataclass(frozen=True, slots=True)
class _Stage:
    """Who takes part in the demo, and the screen that shows it."""

    writer: Writer
    receiver: Receiver
    gateway: Gateway
    screen: table.Screen
    clock: Clock


async def _until_stopped(folder: Path, once: bool, port: int, breaking: bool) -> int:
    wish = _Stop()
    tour = asyncio.create_task(_tour(folder, once, port, breaking, wish))
    loop = asyncio.get_running_loop()

    def stop() -> None:
        # A signal never interrupts the shutdown.
        if not wish.requested.is_set():
            wish.requested.set()
            if not wish.watching:
                tour.cancel()
        elif wish.patience is not None:
            wish.hurried = True
            wish.patience.reschedule(loop.time())

    def hang_up() -> None:
        # A terminal that closes sends it more than once.
        if not wish.requested.is_set():
            stop()

    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        return await tour
    except asyncio.CancelledError:
        return 1 if once else 0


async def _tour(folder: Path, once: bool, port: int, breaking: bool, wish: _Stop) -> int:
    ids, screen, t = Ids(), table.Screen(), spoken()
    moved = MovedClock(folder / "clock") if breaking else None
    clock: Clock = moved or SystemClock()
    inboxes = [
        Inbox("ledger", CONTACTS + COMPANIES, t("demo.accepts")),
        Inbox("newsletter", CONTACTS, t("demo.refuses", of="4"), fail_every=4),
        Inbox("warehouse", COMPANIES, t("demo.refuses", of="2"), fail_every=2),
    ]
    if not once and not breaking:
        inboxes.append(Inbox("shop", SALES, t("demo.accepts")))
    receiver = Receiver(inboxes, clock, moved.walls if moved else None)
    async with contextlib.AsyncExitStack() as stack:
        receiver_port = await receiver.start()
        stack.push_async_callback(receiver.stop)
        serve = (
            ("gateway.cli.demo.breaking.clocked_serve", str(folder / "clock"))
            if breaking
            else SERVE
        )
        gateway = Gateway(folder, receiver_port, port, serve)
        stack.push_async_callback(gateway.stop)
        screen.say(t("demo.starting"))
        await gateway.start()
        account = Account(f"demo-{ids.token(4).hex()}@example.com", ids.token(9).hex())
        key = await _set_up(gateway, account, inboxes, receiver_port, screen)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        writer = Writer(http, gateway.url, key, ids, patient=breaking)
        if moved is not None:
            scene = Scene(gateway, receiver, moved, folder / "carteiro.db")
            feed = Feed(Owner(http, gateway.url, key), writer)
            show = broken(scene, feed, writer)
            if once:
                return await each_once(show, screen)
            wish.watching = True
            heading = _heading(gateway, account)
            return await with_page(
                show,
                screen,
                ids,
                heading=heading,
                account=account,
                requested=wish.requested,
                waits=wish.wait,
            )
        stage = _Stage(writer, receiver, gateway, screen, clock)
        if once:
            return await _check(stage)
        owner = Owner(http, gateway.url, key)
        shop = Shop(gateway.url, f"cafe-{ids.token(4).hex()}.example")
        stack.push_async_callback(shop.stop)
        await _open_shop(shop, owner, screen)
        heading = _heading(gateway, account, shop)
        feed = Feed(owner, writer)
        return await _watch(stage, feed, heading, wish)


async def _set_up(
    gateway: Gateway, account: Account, inboxes: list[Inbox], port: int, screen: table.Screen
) -> str:
    """Create account, webhooks and API key with commands and console forms; return the key."""
    t = spoken()
    screen.say(t("demo.account"))
    words = ("user", "add", account.email, "--name", "Demo", "--password-stdin")
    await gateway.command(*words, stdin=account.password + "\n")
    screen.say(t("demo.webhooks", webhooks=len(inboxes)))
    console = Console(gateway.url)
    try:
        await console.sign_in(account)
        for inbox in inboxes:
            url = f"http://127.0.0.1:{port}/{inbox.name}"
            inbox.secret = await console.add_webhook(url, list(inbox.events))
    finally:
        await console.close()
    screen.say(t("demo.key"))
    return await gateway.command("key", "add", account.email, "--name", "demo")


async def _open_shop(shop: Shop, owner: Owner, screen: table.Screen) -> None:
    """Serve the shop page, and create the stores that it shows, one in each language."""
    screen.say(spoken()("demo.shop", products=len(demo_goods.GOODS)))
    await shop.start()
    shop.portuguese = await demo_goods.open_stores(owner, shop.hostname, shop.url)
    shop.owner = owner


async def _watch(stage: _Stage, feed: Feed, heading: list[str], wish: _Stop) -> int:
    """Write and draw until a signal, then wait for the last deliveries and print totals."""
    writer, receiver, screen, clock = stage.writer, stage.receiver, stage.screen, stage.clock
    inboxes = list(receiver.inboxes.values())
    judge = Judge(feed.owner)
    await judge.listed()
    begun = clock.monotonic()
    wish.watching = True
    while not wish.requested.is_set():
        line = table.summary(inboxes, writer.writes, clock.monotonic() - begun)
        screen.draw(heading, inboxes, writer.expected, line)
        await writer.write()
        await feed.read()
        # Most deliveries arrive within this pause, before the table is drawn.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                await wish.requested.wait()
    screen.say(spoken()("demo.last"))
    try:
        async with asyncio.timeout(LAST_SECONDS) as wish.patience:
            await feed.read_all()
            while missing := table.missing(inboxes, writer.expected):
                judged = await judge.judge(missing)
                if not (judged.waiting or judged.lost):
                    break
                await asyncio.sleep(PAUSE)
    except TimeoutError:
        pass
    finally:
        wish.patience = None
    seconds = clock.monotonic() - begun
    line = table.summary(inboxes, writer.writes, seconds)
    screen.draw(heading, inboxes, writer.expected, line)
    return await _settle(stage, seconds, waited=not wish.hurried, judge=judge)


async def _check(stage: _Stage) -> int:
    """Make the fixed number of writes, wait for all deliveries and print totals."""
    writer, receiver, screen, clock = stage.writer, stage.receiver, stage.screen, stage.clock
    begun = clock.monotonic()
    t = spoken()
    screen.say(t("demo.writing", records=ONCE_WRITES))
    for _ in range(ONCE_WRITES):
        await writer.write()
    screen.say(t("demo.deliveries"))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ONCE_SECONDS):
            while table.missing(receiver.inboxes.values(), writer.expected):
                receiver.changed.clear()
                await receiver.changed.wait()
    seconds = clock.monotonic() - begun
    inboxes = list(receiver.inboxes.values())
    for row in table.rows(inboxes, writer.expected):
        screen.say(row)
    screen.say(table.summary(inboxes, writer.writes, seconds))
    return await _settle(stage, seconds)


async def _settle(
    stage: _Stage, seconds: float, *, waited: bool = True, judge: Judge | None = None
) -> int:
    """Stop the gateway, print totals and faults, and return the exit status.

    A `judge` tells what somebody did in the console meanwhile.
    """
    writer, screen = stage.writer, stage.screen
    inboxes = list(stage.receiver.inboxes.values())
    judged = Judgement()
    sent_again: Mapping[tuple[str, str], int] = {}
    if judge is not None:
        # What a job sends again from here on arrives after the gateway was asked about it.
        inboxes = [replace(one, accepted=Counter(one.accepted)) for one in inboxes]
        judged = await judge.judge(table.missing(inboxes, writer.expected))
        sent_again = await judge.sent_again(inboxes)
    status = await stage.gateway.stop()
    missing = set(table.missing(inboxes, writer.expected))
    kept_back, unfinished = missing & {*judged.kept_back}, missing & {*judged.waiting}
    faults = table.faults(
        inboxes, writer.expected, complete=waited, excused=kept_back | unfinished,
        sent_again=sent_again,
    )  # fmt: skip
    if status:
        faults.append(f"the gateway exited with status {status}")
    for row in table.totals(
        inboxes, writer.expected, seconds, waited=waited, kept_back=len(kept_back),
        unfinished=len(unfinished),
    ):  # fmt: skip
        screen.say(row)
    for row in table.verdict(faults, "demo.no_faults" if missing or not waited else "demo.right"):
        screen.say(row)
    return 1 if faults else 0


def _heading(gateway: Gateway, account: Account, shop: Shop | None = None) -> list[str]:
    t = spoken()
    return [
        t("demo.heading"),
        "",
        *([f"{t('demo.address_shop'):<9} {shop.url}"] if shop else []),
        f"{t('demo.address_console'):<9} {gateway.url}/console",
        f"{t('demo.sign_in'):<9} {account.email}  {t('demo.password')}  {account.password}",
    ]

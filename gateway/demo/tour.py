"""The demo from start to end: set up by the real doors, write, watch, take everything down."""

import asyncio
import contextlib
import signal
import sys
import tempfile
from pathlib import Path

import aiohttp

from gateway.demo import ledger, table
from gateway.demo.receiver import Inbox, Receiver
from gateway.demo.server import Account, Console, DemoFault, Gateway
from gateway.demo.writer import Writer
from outbox.clock import Clock, SystemClock
from outbox.ids import Ids

ONCE_WRITES = 60
ONCE_SECONDS = 60.0
PAUSE = 0.2
"""Seconds between writes, and between two drawings of the table."""
CONTACTS = ("contact.created", "contact.updated", "contact.deleted")
COMPANIES = ("company.created", "company.updated", "company.deleted")


def run(folder: Path | None, *, once: bool, port: int = 0) -> int:
    """Run the demo in `folder` (None: a temporary one); the exit status.

    With `once`: a fixed amount of writes, 0 when each event arrived once and well signed, else 1.
    Otherwise until Ctrl-C or SIGTERM, and 0.
    """
    try:
        with contextlib.ExitStack() as stack:
            if folder is None:
                made = tempfile.TemporaryDirectory(prefix="carteiro-demo-")
                folder = Path(stack.enter_context(made))
            folder.mkdir(parents=True, exist_ok=True)
            return asyncio.run(_until_stopped(folder.resolve(), once, port))
    except (DemoFault, OSError) as fault:
        sys.stderr.write(f"carteiro demo: {fault}\n")
        return 1


async def _until_stopped(folder: Path, once: bool, port: int) -> int:
    tour = asyncio.create_task(_tour(folder, once, port))
    loop = asyncio.get_running_loop()
    stopped = False

    def stop() -> None:
        nonlocal stopped
        if not stopped:  # a second Ctrl-C must not cut the taking down short
            stopped = True
            tour.cancel()

    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop)
    try:
        return await tour
    except asyncio.CancelledError:
        return 1 if once else 0


async def _tour(folder: Path, once: bool, port: int) -> int:
    clock, ids, screen = SystemClock(), Ids(), table.Screen()
    inboxes = [
        Inbox("ledger", CONTACTS + COMPANIES, "answers at once"),
        Inbox("newsletter", CONTACTS, "refuses 1 in 4", fail_every=4),
        Inbox("warehouse", COMPANIES, "refuses 1 in 2", fail_every=2),
    ]
    receiver = Receiver(inboxes, clock)
    async with contextlib.AsyncExitStack() as stack:
        receiver_port = await receiver.start()
        stack.push_async_callback(receiver.stop)
        gateway = Gateway(folder, receiver_port, port)
        stack.push_async_callback(gateway.stop)
        screen.say("starting the gateway …")
        await gateway.start()
        account = Account(f"demo-{ids.token(4).hex()}@example.com", ids.token(9).hex())
        key = await _set_up(gateway, account, inboxes, receiver_port)
        http = await stack.enter_async_context(aiohttp.ClientSession())
        writer = Writer(http, gateway.url, key, ids)
        if once:
            return await _check(writer, receiver, gateway, screen, clock)
        await _watch(writer, inboxes, screen, clock, _heading(gateway, account))
    return 0


async def _set_up(gateway: Gateway, account: Account, inboxes: list[Inbox], port: int) -> str:
    """Account, webhooks and API key, made as a person would make them; the key."""
    words = ("user", "add", account.email, "--name", "Demo", "--password-stdin")
    await gateway.command(*words, stdin=account.password + "\n")
    console = Console(gateway.url)
    try:
        await console.sign_in(account)
        for inbox in inboxes:
            url = f"http://127.0.0.1:{port}/{inbox.name}"
            inbox.secret = await console.add_webhook(url, list(inbox.events))
    finally:
        await console.close()
    return await gateway.command("key", "add", account.email, "--name", "demo")


async def _watch(
    writer: Writer, inboxes: list[Inbox], screen: table.Screen, clock: Clock, heading: list[str]
) -> None:
    """Write and draw until cancelled."""
    begun = clock.monotonic()
    while True:
        line = table.summary(inboxes, writer.writes, clock.monotonic() - begun)
        screen.draw(heading, inboxes, writer.expected, line)
        await writer.write()
        await asyncio.sleep(PAUSE)  # long enough for most of it to arrive before it is drawn


async def _check(
    writer: Writer, receiver: Receiver, gateway: Gateway, screen: table.Screen, clock: Clock
) -> int:
    """Write the fixed amount, wait until all has arrived, stop the gateway, settle the account."""
    inboxes = list(receiver.inboxes.values())
    begun = clock.monotonic()
    screen.say(f"writing {ONCE_WRITES} records through the REST API …")
    for _ in range(ONCE_WRITES):
        await writer.write()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ONCE_SECONDS):
            while any(ledger.waiting(inbox, writer.expected) for inbox in inboxes):
                receiver.changed.clear()
                await receiver.changed.wait()
    status = await gateway.stop()
    found = ledger.faults(inboxes, writer.expected)
    if status:
        found.append(f"the gateway ended with status {status}")
    for row in table.rows(inboxes, writer.expected):
        screen.say(row)
    screen.say(table.summary(inboxes, writer.writes, clock.monotonic() - begun))
    for fault in found[:20]:
        screen.say(f"WRONG  {fault}")
    screen.say("every event arrived once, well signed" if not found else f"{len(found)} faults")
    return 1 if found else 0


def _heading(gateway: Gateway, account: Account) -> list[str]:
    return [
        "Carteiro demo: real writes, real deliveries, a receiver that fails some on purpose",
        "",
        f"console   {gateway.url}/console",
        f"sign in   {account.email}  password  {account.password}",
    ]

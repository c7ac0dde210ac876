"""The course of `carteiro demo --break`: until Ctrl-C with its page, or each act once."""

import asyncio
from collections.abc import Callable, Sequence

from gateway.cli.demo import table
from gateway.cli.demo.breaking.acts import Scene
from gateway.cli.demo.breaking.break_page import BreakPage
from gateway.cli.demo.breaking.ledger import Entry, Ledger
from gateway.cli.demo.breaking.show import Show, possible
from gateway.cli.demo.demo_gateway import Account
from gateway.cli.demo.demo_writer import Feed, Writer
from gateway.cli.demo.judgement import Judge
from gateway.cli.language import spoken
from outbox.clock import sleep_until_set
from outbox.ids import Ids

CALM = 2.0
"""Seconds of writes before each act of `--once`."""
LAST_SECONDS = 120.0
DRAWN = 0.5
Waits = Callable[[asyncio.Timeout | None], None]


def scene_line(entry: Entry) -> str:
    """Return the line of an act that has ended."""
    fault = (entry.ended or entry.began) - entry.began
    recovery = (entry.over or 0) - (entry.ended or 0)
    t = spoken()
    return t(
        "break.once_failed" if entry.failed else "break.once",
        act=t(f"break.act.{entry.name}"),
        fault=f"{fault:.1f}",
        recovery=f"{recovery:.1f}",
    )


def broken(scene: Scene, feed: Feed, writer: Writer) -> Show:
    """Return the show of a demo whose gateway runs."""
    inboxes = list(scene.receiver.inboxes.values())
    ledger = Ledger(inboxes, writer, scene.clock, scene.clock.monotonic())
    return Show(scene, ledger, feed, Judge(feed.owner))


async def each_once(show: Show, screen: table.Screen) -> int:
    """Make each possible act once, tell its time to recovery, and return the exit status."""
    show.start()
    for act in possible():
        await sleep_until_set(show.stopping, CALM)
        screen.say(scene_line(await show.perform(act)))
    return await _end(show, screen)


async def with_page(
    show: Show,
    screen: table.Screen,
    ids: Ids,
    heading: Sequence[str],
    account: Account,
    requested: asyncio.Event,
    waits: Waits,
) -> int:
    """Serve the page until a signal, draw the table meanwhile, and return the exit status."""
    page = BreakPage(show, ids, account)
    await page.start()
    show.start()
    t, ledger = spoken(), show.ledger
    try:
        lines = [*heading, f"{t('break.address'):<9} {page.url}"]
        while not requested.is_set() and not show.failed():
            seconds = ledger.clock.monotonic() - ledger.began
            line = table.summary(ledger.inboxes, ledger.writer.writes, seconds)
            screen.draw(lines, ledger.inboxes, ledger.writer.expected, line)
            await sleep_until_set(requested, DRAWN)
        screen.say(t("demo.last"))
    finally:
        await page.stop()
    return await _end(show, screen, waits)


async def _end(show: Show, screen: table.Screen, waits: Waits | None = None) -> int:
    """Wait for the last deliveries, stop the gateway, print totals, return the exit status.

    `waits` gets the timeout of the wait, and None after it; who makes it shorter is in a hurry,
    and what is missing then is not lost.
    """
    hurried = await _last_arrived(show, waits)
    await show.stop()
    faults = _faults(show.ledger, complete=not hurried)
    status = await show.scene.gateway.stop()
    if status:
        faults.append(f"the gateway exited with status {status}")
    ledger = show.ledger
    seconds = ledger.clock.monotonic() - ledger.began
    for row in (
        *table.totals(
            ledger.inboxes,
            ledger.writer.expected,
            seconds,
            waited=not hurried,
            kept_back=len(ledger.kept_back),
        ),
        *table.verdict(faults, "demo.no_faults" if hurried else "break.right"),
    ):
        screen.say(row)
    return 1 if faults else 0


async def _last_arrived(show: Show, waits: Waits | None) -> bool:
    """End the writes and wait for the last deliveries; return whether somebody cut the wait."""
    await show.end_writes()
    loop = asyncio.get_running_loop()
    end = loop.time() + LAST_SECONDS
    try:
        async with asyncio.timeout_at(end) as patience:
            if waits is not None:
                waits(patience)
            # What was written without an answer is heard of before the end.
            await show.feed.read_all()
            await show.arrived()
    except TimeoutError:
        return loop.time() < end
    finally:
        if waits is not None:
            waits(None)
    return False


def _faults(ledger: Ledger, *, complete: bool) -> list[str]:
    """Return what is wrong at the end, a line each."""
    back = set(ledger.kept_back)
    return [
        *(scene_line(entry) for entry in ledger.entries if entry.failed and complete),
        *(
            f"{name}: {event} of {record} never arrived"
            for name, event, record in (ledger.missing() if complete else ())
            if (name, event, record) not in back
        ),
        *(f"{inbox.name}: {fault}" for inbox in ledger.inboxes for fault in inbox.bad),
    ]

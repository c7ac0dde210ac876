"""The course of `carteiro demo --break`: until Ctrl-C with its page, or each act once."""

import asyncio
import contextlib
from collections.abc import Sequence

from gateway.cli.demo import table
from gateway.cli.demo.breaking.acts import Scene
from gateway.cli.demo.breaking.ledger import Entry, Ledger
from gateway.cli.demo.breaking.server import BreakPage
from gateway.cli.demo.breaking.show import Show, possible
from gateway.cli.demo.judgement import Judge
from gateway.cli.demo.server import Account, DemoFault
from gateway.cli.demo.writer import Feed, Writer
from gateway.cli.language import spoken
from outbox.clock import sleep_until_set
from outbox.ids import Ids

CALM = 2.0
"""Seconds of writes before each act of `--once`."""
LAST_SECONDS = 120.0
DRAWN = 0.5


def scene_line(entry: Entry) -> str:
    """Return the line of an act that has ended."""
    fault = (entry.ended or entry.began) - entry.began
    recovery = (entry.recovered or 0) - (entry.ended or 0)
    t = spoken()
    return t(
        "break.once", act=t(f"break.act.{entry.name}"), fault=f"{fault:.1f}",
        recovery=f"{recovery:.1f}",
    )  # fmt: skip


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
    return await _end(show, screen)


async def _end(show: Show, screen: table.Screen) -> int:
    """Wait for the last deliveries, stop the gateway, print totals, return the exit status."""
    faults = await _conclude(show)
    status = await show.scene.gateway.stop()
    if status:
        faults.append(f"the gateway exited with status {status}")
    ledger = show.ledger
    seconds = ledger.clock.monotonic() - ledger.began
    for row in (
        *table.totals(
            ledger.inboxes, ledger.writer.expected, seconds, kept_back=len(ledger.kept_back)
        ),
        *table.verdict(faults, "break.right"),
    ):
        screen.say(row)
    return 1 if faults else 0


async def _conclude(show: Show) -> list[str]:
    """End the writes, wait for the last deliveries, and return what is wrong, a line each."""
    with contextlib.suppress(TimeoutError, DemoFault):
        async with asyncio.timeout(LAST_SECONDS):
            # What was written without an answer is heard of before the end.
            await show.feed.read_all()
            await show.arrived()
    await show.stop()
    ledger = show.ledger
    back = set(ledger.kept_back)
    wrong = [
        f"{name}: {event} of {record} never arrived"
        for name, event, record in ledger.missing()
        if (name, event, record) not in back
    ]
    return wrong + [f"{inbox.name}: {fault}" for inbox in ledger.inboxes for fault in inbox.bad]

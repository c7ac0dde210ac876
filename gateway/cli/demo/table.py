"""Compares written with received events, and shows the counts in a table, live on a terminal."""

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TextIO

from gateway.cli.demo.receiver import Inbox
from gateway.cli.language import spoken

Missing = tuple[str, str, str]
"""A delivery that has not arrived: (inbox, event name, record id)."""
Expected = Sequence[tuple[str, str]]
"""(event name, record id) of every acknowledged write."""


def due(inbox: Inbox, expected: Expected) -> set[tuple[str, str]]:
    """Return the events that this inbox must receive."""
    return {pair for pair in expected if pair[0] in inbox.events}


def waiting(inbox: Inbox, expected: Expected) -> int:
    """Return the number of events that the inbox has not accepted yet."""
    return len(due(inbox, expected) - inbox.arrived.keys())


def missing(inboxes: Iterable[Inbox], expected: Expected) -> list[Missing]:
    """Return the deliveries that have not arrived."""
    return [
        (inbox.name, *pair)
        for inbox in inboxes
        for pair in sorted(due(inbox, expected) - inbox.arrived.keys())
    ]


def faults(
    inboxes: Iterable[Inbox],
    expected: Expected,
    *,
    complete: bool = True,
    excused: Collection[Missing] = (),
    sent_again: Mapping[tuple[str, str], int] | None = None,
) -> list[str]:
    """Return all differences, a line each; empty when there are none.

    `excused` deliveries have not arrived and are no fault, and neither are events that the owner
    has sent again, so often: (inbox, event id) → replays. Unless `complete`, an event that has not
    arrived is not a fault, as it may still arrive, and neither is an event that nobody expected,
    as its write may not have been heard of yet.
    """
    lines = []
    for inbox in inboxes:
        due_events = due(inbox, expected)
        lines += [
            f"{name}: {event} of {record} never arrived"
            for name, event, record in (missing([inbox], expected) if complete else ())
            if (name, event, record) not in excused
        ]
        for event, record in sorted(inbox.arrived.keys() - due_events) if complete else ():
            lines.append(f"{inbox.name}: {event} of {record} is unexpected")
        for event_id, times in inbox.accepted.items():
            if times > 1 + (sent_again or {}).get((inbox.name, event_id), 0):
                lines.append(f"{inbox.name}: event {event_id} arrived {times} times")
        lines.extend(f"{inbox.name}: {fault}" for fault in inbox.bad)
    return lines


COLUMNS = (
    "webhook",
    "behaviour",
    "arrived",
    "waiting",
    "refused",
    "retries",
    "verified",
    "bad",
)
"""The headers, by their keys."""
CLEAR_DOWN, HOME = "\x1b[J", "\x1b[H"
BOLD, DIM, GREEN, RED, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[0m"


def rows(inboxes: Sequence[Inbox], expected: Expected) -> list[str]:
    """Return the table as aligned lines, header first."""
    t = spoken()
    cells: list[tuple[str, ...]] = [tuple(t(f"demo.column.{name}") for name in COLUMNS)]
    for inbox in inboxes:
        counts = (
            sum(inbox.accepted.values()),
            waiting(inbox, expected),
            inbox.refused,
            inbox.retries,
            inbox.verified,
            len(inbox.bad),
        )
        cells.append((inbox.name, inbox.manner, *(str(count) for count in counts)))
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    return [
        "  ".join(
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]


def summary(inboxes: Sequence[Inbox], writes: int, seconds: float) -> str:
    """Return one line with the numbers of writes, deliveries, retries and signatures."""
    counts = (
        ("demo.sum_writes", writes),
        ("demo.sum_deliveries", sum(sum(inbox.accepted.values()) for inbox in inboxes)),
        ("demo.sum_retries", sum(inbox.retries for inbox in inboxes)),
        ("demo.sum_verified", sum(inbox.verified for inbox in inboxes)),
        ("demo.sum_bad", sum(len(inbox.bad) for inbox in inboxes)),
    )
    t = spoken()
    # As a text: a terminal's columns stay without separators of thousands.
    parts = [t(key, count=str(count)) for key, count in counts]
    return "   ".join((f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}", *parts))


def totals(
    inboxes: Sequence[Inbox],
    expected: Expected,
    seconds: float,
    *,
    waited: bool = True,
    kept_back: int = 0,
    unfinished: int = 0,
) -> list[str]:
    """Return the final counts, a line each. Unless `waited`, a missing event is not lost yet.

    `kept_back` of those that are missing wait or ended because the owner wants it so; `unfinished`
    of them can still arrive.
    """
    missing = sum(waiting(inbox, expected) for inbox in inboxes) - kept_back
    if not waited:
        unfinished = missing
    t = spoken()
    counts = (
        ("demo.written", len(expected), ""),
        ("demo.accepted", sum(sum(inbox.accepted.values()) for inbox in inboxes), ""),
        ("demo.failed", sum(inbox.refused for inbox in inboxes), t("demo.on_purpose")),
        ("demo.retries", sum(inbox.retries for inbox in inboxes), ""),
        ("demo.bad", sum(len(inbox.bad) for inbox in inboxes), ""),
        ("demo.lost", missing - unfinished, ""),
    )
    lines = [
        f"  {t(name):<19}  {count:>6}{f'  ({note})' if note and count else ''}"
        for name, count, note in counts
    ]
    if kept_back:
        lines.append(f"  {t('demo.kept_back'):<19}  {kept_back:>6}")
    if unfinished:
        lines.append(f"  {t('demo.waiting'):<19}  {unfinished:>6}")
    return [t("demo.totals", seconds=f"{seconds:.1f}"), *lines]


def verdict(faults: Sequence[str], right: str) -> list[str]:
    """Return the faults, or the text `right` when there are none, a line each."""
    if not faults:
        return [spoken()(right)]
    lines = [f"WRONG  {fault}" for fault in faults[:20]]
    return [*lines, spoken()("demo.faults", count=len(faults))]


class Screen:
    """The output: the table in place on a terminal, only the summary line elsewhere."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._live = out.isatty()
        self._last = ""

    def draw(
        self, heading: Sequence[str], inboxes: Sequence[Inbox], expected: Expected, line: str
    ) -> None:
        if self._live:
            header, *body = rows(inboxes, expected)
            colour = RED if any(inbox.bad for inbox in inboxes) else GREEN
            lines = [
                *heading,
                "",
                f"{colour}{line}{PLAIN}",
                "",
                f"{BOLD}{header}{PLAIN}",
                *body,
                "",
                f"{DIM}{spoken()('demo.ends')}{PLAIN}",
            ]
            text = "\n".join(f"{row}\x1b[K" for row in lines)
            self._out.write(
                f"{HOME}{text}\n{CLEAR_DOWN}" if self._last else f"\x1b[2J{HOME}{text}\n"
            )
        elif not self._last:
            self._out.write("\n".join([*heading, line]) + "\n")
        elif line[:5] != self._last[:5]:  # at most once a second
            self._out.write(line + "\n")
        self._last = line
        self._out.flush()

    def say(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

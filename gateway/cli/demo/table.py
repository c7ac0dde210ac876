"""The live table: rows of text from the counts, updated in place on a terminal."""

import sys
from collections.abc import Sequence
from typing import TextIO

from gateway.cli.demo import ledger
from gateway.cli.demo.receiver import Inbox

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
CLEAR_DOWN, HOME = "\x1b[J", "\x1b[H"
BOLD, DIM, GREEN, RED, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[0m"


def rows(inboxes: Sequence[Inbox], expected: ledger.Expected) -> list[str]:
    """Return the table as aligned lines, header first."""
    cells: list[tuple[str, ...]] = [COLUMNS]
    for inbox in inboxes:
        counts = (
            sum(inbox.accepted.values()),
            ledger.waiting(inbox, expected),
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
    return (
        f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}   {writes} writes"
        f"   {sum(sum(inbox.accepted.values()) for inbox in inboxes)} deliveries"
        f"   {sum(inbox.retries for inbox in inboxes)} retries"
        f"   {sum(inbox.verified for inbox in inboxes)} signatures verified"
        f"   {sum(len(inbox.bad) for inbox in inboxes)} bad"
    )


def totals(
    inboxes: Sequence[Inbox], expected: ledger.Expected, seconds: float, *, waited: bool = True
) -> list[str]:
    """Return the final counts, a line each. Unless `waited`, a missing event is not lost yet."""
    missing = sum(ledger.waiting(inbox, expected) for inbox in inboxes)
    counts = (
        ("events written", len(expected), ""),
        ("deliveries accepted", sum(sum(inbox.accepted.values()) for inbox in inboxes), ""),
        ("attempts failed", sum(inbox.refused for inbox in inboxes), "refused on purpose"),
        ("retries", sum(inbox.retries for inbox in inboxes), ""),
        ("bad signatures", sum(len(inbox.bad) for inbox in inboxes), ""),
        ("lost", missing if waited else 0, ""),
    )
    lines = [
        f"  {name:<19}  {count:>6}{f'  ({note})' if note and count else ''}"
        for name, count, note in counts
    ]
    if missing and not waited:
        lines.append(f"  {'still waiting':<19}  {missing:>6}")
    return [f"Totals after {seconds:.1f} s", *lines]


class Screen:
    """The output: the table in place on a terminal, only the summary line elsewhere."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._live = out.isatty()
        self._last = ""

    def draw(
        self, heading: Sequence[str], inboxes: Sequence[Inbox], expected: ledger.Expected, line: str
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
                f"{DIM}Ctrl-C ends the demo and prints totals.{PLAIN}",
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

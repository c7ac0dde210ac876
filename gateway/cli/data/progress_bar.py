"""Show the progress of long work: a bar on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import shutil
from typing import TextIO

from outbox.clock import Clock

BAR_SECONDS = 0.1
LINE_SECONDS = 10.0
WIDTH = 24


class Progress:
    """Reports a share of work on `out`. Use it in a `with` block, which ends the bar."""

    def __init__(self, what: str, out: TextIO, clock: Clock) -> None:
        self._what = what
        self._out = out
        self._clock = clock
        self._bar = out.isatty()
        self._began = self._shown = clock.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def at(self, share: float, now: str) -> None:
        """Report that `share` (0 to 1) is done, and what the work is doing."""
        seconds = self._clock.monotonic()
        if seconds - self._shown < (BAR_SECONDS if self._bar else LINE_SECONDS):
            return
        self._shown = seconds
        share = min(max(share, 0.0), 1.0)
        if not self._bar:
            self._out.write(f"{self._what}: {share:.0%}, {now}\n")
        else:
            done = round(share * WIDTH)
            bar = "█" * done + "░" * (WIDTH - done)
            line = f"{self._what} {bar} {share:4.0%} {self._left(share)} {now}"
            self._out.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
        self._out.flush()

    def step(self, now: str) -> None:
        """Report the beginning of work of unknown length."""
        if self._bar:
            self._out.write(f"\r\x1b[K{self._what}: {now}")
        else:
            self._out.write(f"{self._what}: {now}\n")
        self._out.flush()

    def _left(self, share: float) -> str:
        spent = self._clock.monotonic() - self._began
        if share < 0.02:
            return "     "
        remaining = round(spent / share - spent)
        return f"{remaining // 60:2d}:{remaining % 60:02d}"

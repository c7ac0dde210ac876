"""Figures of receivers over days, for charts that have something to show."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sin

from outbox.durations import HOUR
from outbox.queue.state.figures import STEP

Shape = Callable[[int], list[tuple[str, int, int]]]
"""The results of a step with their number and their duration."""


def busy(now: int) -> Shape:
    """A receiver with days and nights, some failures, and an outage some hours ago."""

    def shape(at: int) -> list[tuple[str, int, int]]:
        noise = at // STEP * 7919 % 13
        if now - 7 * HOUR < at < now - 5 * HOUR:
            return [("timeout", 3, 15_000_000), ("http_5xx", 4 + noise % 3, 80_000)]
        count = round(20 * (1 + sin(2 * pi * at / (24 * HOUR)))) + noise
        failed = 1 if noise == 3 else 0
        return [("success", count, 30_000 + 2_000 * noise), ("throttled", failed, 12_000)]

    return shape


def down(now: int) -> Shape:
    """A receiver that failed for good some hours ago."""

    def shape(at: int) -> list[tuple[str, int, int]]:
        if at < now - 20 * HOUR:
            return [("success", 3, 120_000)]
        lost = 1 if at % (6 * HOUR) == 0 else 0
        return [("connect_error", 2, 900), ("exhausted", lost, 0)]

    return shape

"""Reads and writes a webhook's own retry schedule as its owner types it: `5 s, 5 min, 2 h`."""

import re

from outbox.queue.state.policy import parse_schedule

MOST = 20
"""Retries of a schedule at most."""
SHORTEST, LONGEST = 1, 30 * 86_400
"""Limits in seconds: of each wait, and of all waits together."""
NEVER = "never"
UNITS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1, "": 1}
WAIT = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?)\s*(d|h|min|m|s|)", re.ASCII)

SYNTAX = "Write the waits before each retry, separated by commas, as 5 s, 5 min, 2 h or 1 d."
COUNT = f"A schedule has at most {MOST} retries."
WAITS = "A wait must last from 1 second to 30 days."
TOTAL = "All waits together must last at most 30 days."


def read(text: str) -> tuple[float, ...] | None:
    """Return the seconds before each retry; None for an empty text. Raise ValueError.

    `never` is a schedule without retries.
    """
    text = text.strip().lower()
    if not text:
        return None
    if text == NEVER:
        return ()
    waits = []
    for part in text.split(","):
        match = WAIT.fullmatch(part.strip())
        if match is None:
            raise ValueError(SYNTAX)
        waits.append(float(match[1]) * UNITS[match[2]])
    if len(waits) > MOST:
        raise ValueError(COUNT)
    if not all(SHORTEST <= wait <= LONGEST for wait in waits):
        raise ValueError(WAITS)
    if sum(waits) > LONGEST:
        raise ValueError(TOTAL)
    return tuple(waits)


def written(waits: tuple[float, ...] | None) -> str:
    """Return the text that `read` reads as these waits."""
    if waits is None:
        return ""
    return ", ".join(map(_wait, waits)) or NEVER


def stored(text: str | None) -> tuple[float, ...] | None:
    """Return the waits of the column `schedule` of a webhook; None for a damaged one."""
    try:
        return None if text is None else parse_schedule(text).waits
    except ValueError:
        return None


def of_column(text: str | None) -> str:
    """Return the text of that column; empty for a damaged one."""
    return written(stored(text))


def _wait(seconds: float) -> str:
    for unit, size in UNITS.items():
        if unit not in ("m", "") and seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"

"""Times that a person types, in the time zone of the account.

When clocks go back, an hour comes twice: a range begins at its first pass and ends at its second,
so that it has both. A time that clocks skip when they go forward counts from the old offset on:
02:30 is then 03:30.
"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gateway.records.values import dates
from outbox.durations import SECOND


def typed(text: str, zone: str, *, ends: bool = False) -> int | None:
    """Return the moment of a date and time in the zone, or of RFC 3339 with Z; None of others.

    `ends`: it is the end of a range. Microseconds UTC.
    """
    if text.endswith("Z"):
        return dates.parse(text)
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        return None
    if local.tzinfo is not None or not 1970 < local.year < 9999:
        return None
    moment = local.replace(tzinfo=ZoneInfo(zone), fold=_fold(local, zone, ends))
    return round(moment.astimezone(UTC).timestamp()) * SECOND


def shown(text: str, zone: str) -> str:
    """Return what was typed as an input for local times takes it; other texts as they are."""
    moment = dates.parse(text) if text.endswith("Z") else None
    return text if moment is None else local(moment, zone)


def local(micros: int, zone: str) -> str:
    """Return a moment as an input for local times takes it: `2026-11-25T14:03`."""
    moment = dates.local(micros, zone).replace(tzinfo=None)
    return moment.isoformat(timespec="seconds" if moment.second else "minutes")


def _fold(local: datetime, zone: str, ends: bool) -> int:
    """Return 1 for the second pass of an hour that comes twice; a skipped hour has no second."""
    first, second = (local.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    # A repeated hour goes over to a smaller offset, a skipped one to a larger.
    return int(ends and first.astimezone(UTC) < second.astimezone(UTC))

"""Reads the form of a recover or backfill job: what was typed, its faults, and the job's draft."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args
from zoneinfo import ZoneInfo

from gateway.console.frame.forms import Form
from gateway.domain.catalogue import EVENT_NAMES
from gateway.records.values import dates
from outbox.queue.replays.jobs import FASTEST, SLOWEST, Draft
from outbox.states import End

ENDS: tuple[End, ...] = ("exhausted", "gone", "dead", "cancelled", "delivered")
USUAL_ENDS: tuple[End, ...] = ("exhausted", "gone", "dead")
USUAL_RATE = 50
DAY = 86_400_000_000
assert set(ENDS) == set(get_args(End))


@dataclass(frozen=True, slots=True)
class Asked:
    """What was typed, as text, with its faults; `draft` is set when there are none."""

    backfill: bool
    typed: Mapping[str, Any]
    faults: Mapping[str, str]
    draft: Draft | None

    @property
    def question(self) -> str:
        """What must be confirmed: `twice` when receivers get events that they accepted."""
        return "twice" if self.draft and "delivered" in self.draft.ends else "count"


def fresh(backfill: bool, now: int, zone: str) -> Asked:
    """Return the form before anything is typed: the last day."""
    typed = {
        "ends": USUAL_ENDS, "names": (), "since": _local(now - DAY, zone), "until": "",
        "rate": str(USUAL_RATE),
    }  # fmt: skip
    return Asked(backfill, typed, {}, None)


def read(form: Form, now: int, zone: str) -> Asked:
    """Read the form; times without an offset are in the time zone `zone`."""
    backfill = form.text("kind") == "backfill"
    typed = {
        "ends": tuple(end for end in ENDS if end in form.all("ends")),
        "names": tuple(name for name in EVENT_NAMES if name in form.all("names")),
        "since": form.text("since").strip(), "until": form.text("until").strip(),
        "rate": form.text("rate").strip(),
    }  # fmt: skip
    faults = {}
    since = _moment(str(typed["since"]), zone)
    until = _moment(str(typed["until"]), zone) if typed["until"] else now
    rate = str(typed["rate"])
    if since is None:
        faults["since"] = "recover.fault.time"
    if until is None:
        faults["until"] = "recover.fault.time"
    if since is not None and until is not None and since >= min(until, now):
        faults["since"] = "recover.fault.order"
    if not (rate.isascii() and rate.isdigit() and SLOWEST <= int(rate[:9]) <= FASTEST):
        faults["rate"] = "recover.fault.rate"
    if not backfill and not typed["ends"]:
        faults["ends"] = "recover.fault.ends"
    if faults or since is None or until is None:
        return Asked(backfill, typed, faults, None)
    ends = () if backfill else tuple(end for end in ENDS if end in form.all("ends"))
    names = tuple(name for name in EVENT_NAMES if name in form.all("names")) or None
    # The page that asks for confirmation sends these back, so both mean the same moments.
    typed |= {"since": dates.show(since), "until": dates.show(min(until, now))}
    return Asked(backfill, typed, {}, Draft(ends, names, since, min(until, now), int(rate)))


def _moment(text: str, zone: str) -> int | None:
    """Return the moment of a text in RFC 3339 with Z, or of a date and time in the zone."""
    if text.endswith("Z"):
        return dates.parse(text)
    try:
        local = datetime.fromisoformat(text)
    except ValueError:
        return None
    if local.tzinfo is not None or not 1970 < local.year < 9999:
        return None
    return round(local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).timestamp()) * 1_000_000


def _local(micros: int, zone: str) -> str:
    return f"{datetime.fromtimestamp(micros // 1_000_000, ZoneInfo(zone)):%Y-%m-%dT%H:%M}"

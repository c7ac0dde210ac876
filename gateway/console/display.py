"""How values look on a page: times, spans, sizes, states, and bytes from strangers made inert."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from gateway.records.values import dates
from outbox.queue.log import Attempt, Delivery
from outbox.webhooks import Webhook

T = Callable[..., str]
SECOND = 1_000_000
FAILING = 3
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# The first mark that is there wins: later browsers' names stand in earlier ones' strings too.
BROWSERS = (
    ("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"),
    ("Safari/", "Safari"), ("curl/", "curl"), ("python", "Python"), ("Python", "Python"),
)  # fmt: skip
SYSTEMS = (
    ("Windows", "Windows"), ("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"),
    ("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"),
)  # fmt: skip
# Controls except tab and line feed, marks of direction, line separators, surrogates, the BOM.
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
# Where an attempt ended that reached nobody.
FAILED_STEP = {"dns_error": "dns", "connect_error": "connect", "tls_error": "tls"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stretch of an attempt; `start` and `width` in thousandths of its whole time."""

    name: str
    micros: int
    start: int
    width: int


def exact(micros: int) -> str:
    """The instant for people who compare it with a log."""
    return dates.show(micros).replace("T", " ").replace("Z", " UTC")


def span(micros: int) -> str:
    """A stretch of time in its largest unit, rounded down: `4 min`."""
    seconds = max(0, micros) // SECOND
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def when(micros: int | None, now: int, t: T) -> Markup:
    """A time as `<time>`: how long ago to read, the exact instant in its title."""
    if micros is None:
        return Markup("<span>{}</span>").format(t("time.never"))
    if 0 < micros - now < SECOND:
        words = t("time.soon")
    elif micros > now:
        words = t("time.in", span=span(micros - now + SECOND // 2))
    elif now - micros < 5 * SECOND:
        words = t("time.now")
    else:
        words = t("time.ago", span=span(now - micros))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        dates.show(micros), exact(micros), words
    )


def took(micros: int | None) -> str:
    """A short duration: `0.8 ms`, `42 ms`, `1.25 s`."""
    if micros is None:
        return "–"
    if micros < 10_000:
        return f"{micros / 1000:.1f} ms"
    return f"{micros // 1000} ms" if micros < SECOND else f"{micros / SECOND:.2f} s"


def size(count: int) -> str:
    """A number of bytes."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


def browser(agent: str) -> str:
    """The browser and system that a User-Agent names: `Firefox, Linux`; itself when unknown."""
    found = [
        next((name for mark, name in marks if mark in agent), "") for marks in (BROWSERS, SYSTEMS)
    ]
    return ", ".join(name for name in found if name) or agent or "–"


def inert(value: str | bytes | None) -> str:
    """Text of a stranger with nothing left that acts: controls and marks of direction named.

    Escaping for HTML is the template's work and comes after.
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
    return ACTING.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def webhook_state(webhook: Webhook) -> str:
    """The one word for a webhook: its state, or its trouble when it is active.

    A single failure is daily life, a few in a row are not.
    """
    if webhook.state != "active":
        return webhook.state
    if webhook.circuit != "closed":
        return "probing"
    return "failing" if webhook.failures >= FAILING else "active"


def delivery_state(delivery: Delivery, active: bool) -> str:
    """The one word for a delivery, of outbox.queue.log.SHOWN."""
    if delivery.state != "ready":
        return delivery.state
    if not active:
        return "parked"
    return "scheduled" if delivery.due_in > 0 else "ready"


def stages(attempt: Attempt) -> Sequence[Stage]:
    """Where the time of an attempt went, in order, for its bar; together it is the whole time.

    What no step accounts for is spent reading the answer once its first byte is there, and else
    in the step that the attempt did not get past.
    """
    whole = max(attempt.total_us, 1)
    spent = {
        "dns": attempt.dns_us or 0, "connect": attempt.connect_us or 0,
        "tls": attempt.tls_us or 0, "wait": attempt.first_byte_us or 0, "read": 0,
    }  # fmt: skip
    spent[_last_step(attempt)] += max(0, whole - sum(spent.values()))
    found: list[Stage] = []
    passed = 0
    for name, micros in spent.items():
        start, passed = round(passed * 1000 / whole), min(passed + micros, whole)
        if micros:
            found.append(Stage(name, micros, start, round(passed * 1000 / whole) - start))
    return found


def _last_step(attempt: Attempt) -> str:
    if attempt.first_byte_us is not None:
        return "read"
    if attempt.address is not None:
        return "wait"
    return FAILED_STEP.get(attempt.outcome, "wait")

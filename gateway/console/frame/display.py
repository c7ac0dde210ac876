"""Formats values for a page: times, durations, sizes, states and untrusted text."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor

from markupsafe import Markup

from gateway.records.values import dates
from outbox.durations import SECOND
from outbox.queue.log.delivery_types import Attempt
from outbox.webhooks import Webhook

T = Callable[..., str]
FAILING = 3
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# The first match wins: many browsers' strings contain the names of other browsers too.
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
# After a part of a URL that another part follows, but not after `https://`.
PART_END = re.compile(r"(?<=[^/:][/?&])(?=[^/])")
# The step in which an attempt failed that connected to no receiver.
FAILED_STEP = {"dns_error": "dns", "connect_error": "connect", "tls_error": "tls"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of an attempt; `start` and `width` in thousandths of its total time."""

    name: str
    micros: int
    start: int
    width: int


def exact(micros: int) -> str:
    """Return the exact time in UTC, for a comparison with logs."""
    return dates.show(micros).replace("T", " ").replace("Z", " UTC")


def span(micros: int) -> str:
    """Return a duration in its largest unit, rounded down: `4 min`."""
    seconds = max(0, micros) // SECOND
    for size, unit in UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def lasting(micros: int) -> str:
    """Return a wait in its largest unit, with a decimal if it needs one: `1.5 h`, `5 s`."""
    seconds = max(0, micros) / SECOND
    size, unit = next((one for one in UNITS if seconds >= one[0]), (1, "s"))
    return f"{round(seconds / size, 1):g} {unit}"


def when(micros: int | None, now: int, t: T) -> Markup:
    """Return a time as `<time>`: relative in the text, exact in the title."""
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
    """Return a short duration: `0.8 ms`, `42 ms`, `1.25 s`."""
    if micros is None:
        return "–"
    if micros < 10_000:
        return f"{micros / 1000:.1f} ms"
    return f"{micros // 1000} ms" if micros < SECOND else f"{micros / SECOND:.2f} s"


def percent(part: float | None) -> str:
    """Return a part of 1 as text, rounded down: `100 %` only when nothing is missing."""
    return "–" if part is None else f"{floor(part * 1000) / 10:g} %"


def reais(amount: float) -> str:
    """Return an amount in BRL as Brazil writes it: `R$ 1.234,56`."""
    signs = str.maketrans(",.", ".,")
    return f"{'-' if amount < 0 else ''}R$ {abs(amount):,.2f}".translate(signs)


def size(count: int) -> str:
    """Return a number of bytes: `512 B`, `1.5 KiB`."""
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


def browser(agent: str) -> str:
    """Return browser and system of a User-Agent: `Firefox, Linux`; the header if unknown."""
    names = [
        next((name for mark, name in marks if mark in agent), "") for marks in (BROWSERS, SYSTEMS)
    ]
    return ", ".join(name for name in names if name) or agent or "–"


def inert(value: str | bytes | None) -> str:
    """Return untrusted text with control and direction characters replaced by their codes.

    The template escapes the result for HTML.
    """
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""
    return ACTING.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def breakable(url: str) -> Markup:
    """Return an untrusted URL as HTML whose lines break after a part of it, if they can."""
    return Markup("<wbr>").join(PART_END.split(inert(url)))


def pretty(body: bytes) -> str | None:
    """Return a JSON body with line breaks, or None when it is no JSON."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def webhook_state(webhook: Webhook) -> str:
    """Return the word for a webhook: its state, or `probing` or `failing` while it is active.

    A single failure is normal; FAILING failures in a row are not.
    """
    if webhook.state != "active":
        return webhook.state
    if webhook.circuit != "closed":
        return "probing"
    return "failing" if webhook.failures >= FAILING else "active"


def stages(attempt: Attempt) -> Sequence[Stage]:
    """Return the steps of an attempt in order; their sum is the total time.

    Time outside the measured steps counts as reading once the first byte has arrived, else as
    the step in which the attempt ended.
    """
    whole = max(attempt.total_us, 1)
    spent = {
        "dns": attempt.dns_us or 0, "connect": attempt.connect_us or 0,
        "tls": attempt.tls_us or 0, "wait": attempt.first_byte_us or 0, "read": 0,
    }  # fmt: skip
    spent[_last_step(attempt)] += max(0, whole - sum(spent.values()))
    steps: list[Stage] = []
    passed = 0
    for name, micros in spent.items():
        start, passed = round(passed * 1000 / whole), min(passed + micros, whole)
        if micros:
            steps.append(Stage(name, micros, start, round(passed * 1000 / whole) - start))
    return steps


def _last_step(attempt: Attempt) -> str:
    if attempt.first_byte_us is not None:
        return "read"
    if attempt.address is not None:
        return "wait"
    return FAILED_STEP.get(attempt.outcome, "wait")

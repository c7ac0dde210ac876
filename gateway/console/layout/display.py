"""Prepares values for a page: untrusted text, browsers, states and the steps of attempts."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from markupsafe import Markup

from gateway.texts import Texts
from outbox.queue.log.delivery_types import Attempt
from outbox.webhooks import Troubled, Webhook
from outbox.webhooks.deleted import DeletedWebhook

FAILING = 3
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
FAILED_STEP = {
    "dns_error": "dns", "connect_error": "connect", "proxy_error": "connect", "tls_error": "tls",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of an attempt; `start` and `width` in thousandths of its total time."""

    name: str
    micros: int
    start: int
    width: int


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
    # Whatever acts is not printable, so most texts need no second look.
    return text if text.isprintable() else ACTING.sub(lambda match: f"⟨{ord(match[0]):04X}⟩", text)


def word_of(texts: Texts, value: str, noun: str = "") -> str:
    """Return the word for a state or another value of a closed list; a new one is its own word.

    A resource may have a word of its own: in Portuguese it agrees with the `noun`.
    """
    for key in (f"state.{noun}.{value}", f"state.{value}", f"option.{value}"):
        if key in texts:
            return texts(key)
    return value


@lru_cache(maxsize=1_000)
def words_of(name: str) -> str:
    """Return the words of a name: `Discount modals`, `Expected close date`."""
    apart = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in name)
    return f"{apart[:1].upper()}{apart[1:]}".replace("-", " ")


def breakable(url: str) -> Markup:
    """Return an untrusted URL as HTML whose lines break after a part of it, if they can."""
    return Markup("<wbr>").join(PART_END.split(inert(url)))


def title_of(webhook: Webhook | Troubled | DeletedWebhook) -> str:
    """Return what a webhook is called at the head of a page: its description, else its host."""
    return webhook.description or urlsplit(webhook.url).netloc or webhook.url or webhook.id


def name_of(webhook: Webhook | Troubled | DeletedWebhook) -> str:
    """Return what tells a webhook from others in a list: its description, else its URL."""
    return webhook.description or webhook.url or webhook.id


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

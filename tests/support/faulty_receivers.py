"""Receivers with one fault each, beside a careful one, and what a certification must find."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from aiohttp import web

from tests.support.waiting import until

KNOWN = re.compile(
    r"X-Webhook-(Event|Id|Attempt|Test|Timestamp|Signature|Record-Version)", re.IGNORECASE
)
FORM = re.compile(r"v1,[A-Za-z0-9+/]{43}=")

WRONG = (
    "unsigned", "without_id", "without_timestamp", "without_signature", "empty_signature", "forged",
    "wrong_secret", "empty_secret", "changed_body", "longer_body", "spaced_body", "no_body",
    "changed_id", "changed_timestamp", "too_old", "too_new", "odd_timestamp", "other_version",
    "short_signature", "other_case",
)  # fmt: skip
"""The checks of what must be refused."""


async def turns() -> None:
    """Let requests that are on their way arrive: both ends are in this process."""
    for _ in range(100):
        await asyncio.sleep(0)


class Careful:
    """A receiver without a fault: each of the others changes one thing of it."""

    finds: ClassVar[Mapping[str, str]] = {}
    """The checks that must not pass, each with its code."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.seen: set[str] = set()
        self.newest = 0
        self.running = 0
        self.worked = 0.0
        """Seconds that it has taken, by a clock that a test moves."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            genuine = self.genuine(self.headers(request), body)
        except web.HTTPException:
            raise
        except Exception:  # noqa: BLE001 - a program that fails answers so
            return web.Response(status=500)
        return await (self.accept if genuine else self.refuse)(request, body)

    def headers(self, request: web.Request) -> Mapping[str, str]:
        return request.headers

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        return self.fresh(headers) and self.signed(headers, body)

    def fresh(self, headers: Mapping[str, str]) -> bool:
        sent_at = headers.get("webhook-timestamp", "")
        if not re.fullmatch("[0-9]{1,12}", sent_at):
            return False
        return self.near(int(sent_at) - time.time())

    def near(self, ahead: float) -> bool:
        return abs(ahead) <= 300

    def signed(self, headers: Mapping[str, str], body: bytes) -> bool:
        given = self.given(headers.get("webhook-signature", ""))
        return self.judge(given, [self.right(headers, body, key) for key in self.keys()])

    def given(self, value: str) -> list[str]:
        return [one for one in value.split(" ") if one.startswith("v1,")]

    def judge(self, given: list[str], rights: list[str]) -> bool:
        return any(self.same(one, right) for one in given for right in rights)

    def same(self, one: str, right: str) -> bool:
        return hmac.compare_digest(one.encode(), right.encode())

    def keys(self) -> Iterable[bytes]:
        return [base64.b64decode(self.secret.removeprefix("whsec_"))]

    def right(self, headers: Mapping[str, str], body: bytes, key: bytes) -> str:
        return "v1," + self.encoded(hmac.digest(key, self.content(headers, body), "sha256"))

    def encoded(self, digest: bytes) -> str:
        return base64.b64encode(digest).decode()

    def content(self, headers: Mapping[str, str], body: bytes) -> bytes:
        event_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        return f"{event_id}.{sent_at}.".encode() + self.read(body)

    def read(self, body: bytes) -> bytes:
        return body

    async def refuse(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=401)

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=204)


def by_github(self: Careful, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the signature of the body alone is right."""
    right = "sha256=" + hmac.digest(self.secret.encode(), body, "sha256").hex()
    return hmac.compare_digest(headers.get("X-Webhook-Signature", ""), right)


def by_decoded_key(self: Careful, headers: Mapping[str, str], body: bytes) -> bool:
    [key] = Careful.keys(self)
    right = "sha256=" + hmac.digest(key, body, "sha256").hex()
    return hmac.compare_digest(headers.get("X-Webhook-Signature", ""), right)


def by_either(self: Careful, headers: Mapping[str, str], body: bytes) -> bool:
    way = Careful.genuine if "webhook-signature" in headers else by_github
    return way(self, headers, body)


def fresh_by_the_event(self: Careful, headers: Mapping[str, str]) -> bool:
    at = int(headers.get("X-Webhook-Timestamp", "0"))
    return Careful.fresh(self, headers) and abs(at - time.time()) <= 300


def known_alone(self: Careful, value: str) -> list[str]:
    every = value.split(" ")
    return every if all(one.startswith("v1,") for one in every) else []


def says(status: Callable[[Careful, web.Request, bytes], int] | int, **given: Any) -> Any:
    """Return a method that answers a request with this status."""

    async def answer(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
        chosen = status if isinstance(status, int) else status(self, request, body)
        return web.Response(status=chosen, **given)

    return answer


def once(self: Careful, request: web.Request, body: bytes) -> int:
    event_id = request.headers["webhook-id"]
    seen = event_id in self.seen
    self.seen.add(event_id)
    return 409 if seen else 204


def newer(self: Careful, request: web.Request, body: bytes) -> int:
    version = int(request.headers["X-Webhook-Record-Version"])
    older = version == 2 and self.newest == 1
    self.newest = 1 if version == 3 else 0 if version == 2 else self.newest
    return 409 if older else 204


def known_headers(self: Careful, request: web.Request, body: bytes) -> int:
    ours = [name for name in request.headers if name.lower().startswith("x-webhook-")]
    return 204 if all(map(KNOWN.fullmatch, ours)) else 400


def event_of(body: bytes) -> str:
    return str(json.loads(body)["event"])


async def race(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    """Fail when the insert of another request waits for this one."""
    event_id = request.headers["webhook-id"]
    if event_id in self.seen:
        return web.Response(status=500)
    self.seen.add(event_id)
    await turns()
    self.seen.discard(event_id)
    return web.Response(status=204)


def crowded(status: int) -> Any:
    """Return a method that answers so when more than eight requests are under way."""

    async def accept(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
        self.running += 1
        try:
            await turns()
            return web.Response(status=status if self.running > 8 else 204)
        finally:
            self.running -= 1

    return accept


async def work_first(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    self.worked += 10 * (event_of(body) == "deal.created")
    return web.Response(status=204)


async def work_too_long(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    if event_of(body) == "deal.created":
        self.worked += 999
        await until(lambda: request.transport is None)
    return web.Response(status=204)


async def go_on(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    if event_of(body) != "deal.created":
        return web.Response(status=204)
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b"a" * 65_536)
    return answer


async def hang_up(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response(status=401)


async def tell_signature(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    [key] = self.keys()
    return web.Response(status=401, text=f"expected {self.right(request.headers, body, key)}")


async def tell_secret(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
    return web.Response(status=401, headers={"X-Debug": self.secret})


def written_again(ascii_alone: bool) -> Any:
    return lambda self, body: json.dumps(
        json.loads(body), separators=(",", ":"), ensure_ascii=ascii_alone
    ).encode()


def every(code: str, *but: str) -> str:
    """Return that all checks of what must be refused find this code."""
    return " ".join(f"{check}={code}" for check in WRONG if check not in but)


LARGE = "largest_body=refused spare_body=refused kept_connection=refused"
WRITTEN = "spaced_body=accepted longer_body=accepted no_body=crashed"
FAULTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("believes all", every("accepted"), {"genuine": lambda self, headers, body: True}),
    (
        "verifies the old signature",
        "rotation_second=refused without_id=accepted without_timestamp=accepted"
        " without_signature=accepted changed_id=accepted changed_timestamp=accepted"
        " too_old=accepted too_new=accepted odd_timestamp=accepted",
        {"genuine": by_github},
    ),
    ("falls back", "without_signature=accepted", {"genuine": by_either}),
    (
        "wants both", "rotation_second=refused",
        {"genuine": lambda self, headers, body: Careful.genuine(self, headers, body)
         and by_github(self, headers, body)},
    ),
    (
        "takes the first signature", "rotation_second=refused",
        {"given": lambda self, value: Careful.given(self, value)[:1]},
    ),
    (
        "takes the last signature", "rotation_first=refused",
        {"given": lambda self, value: Careful.given(self, value)[-1:]},
    ),
    (
        "takes the whole header",
        "rotation_first=refused rotation_second=refused newer_signatures=refused",
        {"given": lambda self, value: [value]},
    ),
    ("refuses newer versions", "newer_signatures=refused", {"given": known_alone}),
    (
        "takes any version", "other_version=accepted",
        {"given": lambda self, value: [f"v1,{one.partition(',')[2]}" for one in value.split(" ")]},
    ),
    (
        "has no tolerance", "too_old=accepted too_new=accepted",
        {"near": lambda self, ahead: True},
    ),
    ("forgets the future", "too_new=accepted", {"near": lambda self, ahead: ahead >= -300}),
    ("forgets the past", "too_old=accepted", {"near": lambda self, ahead: ahead <= 300}),
    (
        "allows an hour", "too_old=accepted too_new=accepted",
        {"near": lambda self, ahead: abs(ahead) <= 3600},
    ),
    (
        "allows half a minute", "clock_difference=refused",
        {"near": lambda self, ahead: abs(ahead) <= 30},
    ),
    ("reads the time of the event", "late_event=refused", {"fresh": fresh_by_the_event}),
    (
        "fails without an id", "unsigned=crashed without_id=crashed",
        {"genuine": lambda self, headers, body: bool(headers["webhook-id"])
         and Careful.genuine(self, headers, body)},
    ),
    (
        "fails at words", "odd_timestamp=crashed",
        {"fresh": lambda self, headers: self.near(
            int(headers.get("webhook-timestamp", "0")) - time.time())},
    ),
    ("writes again", WRITTEN, {"read": written_again(False)}),
    (
        "writes again in ASCII", f"{WRITTEN} letters=refused {LARGE} every_event=refused",
        {"read": written_again(True)},
    ),
    ("trims", "longer_body=accepted", {"read": lambda self, body: body.strip()}),
    (
        "passes an empty body", "no_body=accepted",
        {"genuine": lambda self, headers, body: not body or Careful.genuine(self, headers, body)},
    ),
    (
        "finds none wrong",
        "empty_signature=accepted without_signature=accepted rotation_first=refused"
        " rotation_second=refused other_version=accepted",
        {"judge": lambda self, given, rights: all(
            self.same(one, right) for one in given for right in rights)},
    ),
    (
        "compares the start", "empty_signature=accepted short_signature=accepted",
        {"same": lambda self, one, right: right.startswith(one)},
    ),
    (
        "ignores case", "other_case=accepted",
        {"same": lambda self, one, right: one.lower() == right.lower()},
    ),
    (
        "looks at the form",
        every("accepted", "unsigned", "without_timestamp", "without_signature", "empty_signature",
              "too_old", "too_new", "odd_timestamp", "other_version"),
        {"same": lambda self, one, right: bool(FORM.fullmatch(one))},
    ),
    (
        "has an empty secret", "empty_secret=accepted",
        {"keys": lambda self: [*Careful.keys(self), b""]},
    ),
    ("refuses a duplicate", "duplicate=refused duplicates_at_once=refused", {"accept": says(once)}),
    ("fails at a race", "duplicates_at_once=crashed", {"accept": race}),
    ("refuses older versions", "reordered=refused", {"accept": says(newer)}),
    (
        "refuses unknown events", "unknown_event=refused",
        {"accept": says(lambda self, request, body:
            422 if event_of(body).startswith("certification.") else 204)},
    ),
    (
        "refuses what it does not use",
        "every_event=refused unknown_event=refused kept_connection=refused largest_body=refused "
        "spare_body=refused",
        {"accept": says(lambda self, request, body:
            204 if event_of(body).startswith("contact.") else 404)},
    ),
    (
        "refuses unknown fields", "unknown_field=refused spare_body=refused",
        {"accept": says(lambda self, request, body:
            400 if "addedLater" in json.loads(body)["data"] else 204)},
    ),
    ("refuses unknown headers", "more_headers=refused", {"accept": says(known_headers)}),
    (
        "reads headers by case", "header_names=refused",
        {"headers": lambda self, request: {
            name.decode(): value.decode() for name, value in request.raw_headers}},
    ),
    (
        "takes small bodies", f"{LARGE} every_event=refused",
        {"accept": says(lambda self, request, body: 413 if len(body) > 1024 else 204)},
    ),
    (
        "takes no spare bytes",
        "spare_body=refused largest_body=refused kept_connection=refused",
        {"accept": says(lambda self, request, body: 413 if len(body) > 16 * 1024 else 204)},
    ),
    ("fails under load", "many_at_once=crashed", {"accept": crowded(500)}),
    ("asks for fewer", "many_at_once=limited", {"accept": crowded(429)}),
    ("works first", "quick=slow", {"accept": work_first}),
    ("works too long", "every_event=late", {"accept": work_too_long}),
    ("never ends", "response_ends=endless", {"accept": go_on}),
    ("redirects", "genuine=redirect", {"accept": says(308, headers={"Location": "/hook/"})}),
    ("is gone", "genuine=gone", {"accept": says(410)}),
    ("is down", "genuine=overloaded", {"accept": says(502)}),
    ("ends the webhook", every("gone"), {"refuse": says(410)}),
    ("sends to the sign-in", every("redirect"), {"refuse": says(302)}),
    ("fails at wrong ones", every("crashed"), {"refuse": says(500)}),
    ("hangs up on wrong ones", every("closed"), {"refuse": hang_up}),
    ("tells the signature", "silent=told", {"refuse": tell_signature}),
    ("tells the secret", "silent=told", {"refuse": tell_secret}),
    ("uses the text as key", "genuine=key_text", {"keys": lambda self: [self.secret.encode()]}),
    (
        "uses the text behind the prefix", "genuine=key_without_prefix",
        {"keys": lambda self: [self.secret.removeprefix("whsec_").encode()]},
    ),
    ("has no secret", "genuine=key_empty", {"keys": lambda self: [b""]}),
    (
        "compares hexadecimal", "genuine=hexadecimal",
        {"encoded": lambda self, digest: digest.hex()},
    ),
    (
        "signs the body alone", "genuine=body_alone",
        {"content": lambda self, headers, body: body},
    ),
    (
        "writes the body again", "genuine=reserialized",
        {"read": lambda self, body: json.dumps(json.loads(body)).encode()},
    ),
    ("decodes the old key", "genuine=github_key", {"genuine": by_decoded_key}),
    ("has another secret", "genuine=refused", {"keys": lambda self: [b"another"]}),
    ("has another path", "genuine=refused", {"genuine": lambda *_: True, "accept": says(404)}),
)  # fmt: skip
"""Each receiver: its name, what a certification must find, and the methods that differ."""

FAULTY: Mapping[str, type[Careful]] = {
    name: type(name, (Careful,), {"finds": dict(w.split("=") for w in finds.split())} | changes)
    for name, finds, changes in FAULTS
}

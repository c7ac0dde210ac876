"""Receivers with one fault each, beside a careful one, and what a certification must find."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import re
import time
from collections.abc import Iterable, Mapping
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
    refusal = 401

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
        if not genuine:
            return await self.refuse(request, body)
        return await self.accept(request, body)

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
        return web.Response(status=self.refusal)

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=204)


def varied(
    name: str, finds: Mapping[str, str], base: type[Careful] = Careful, **changes: Any
) -> type[Careful]:
    """Return a receiver that differs from another one in a method or two."""
    return type(name, (base,), {"finds": finds, **changes})


def says(status: int, **given: Any) -> Any:
    """Return a method that answers every request like this."""

    async def answer(self: Careful, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=status, **given)

    return answer


BelievesAll = varied(
    "BelievesAll", dict.fromkeys(WRONG, "accepted"), genuine=lambda self, headers, body: True
)


class VerifiesTheOldSignature(Careful):
    finds: ClassVar = {
        "rotation_second": "refused",
        **dict.fromkeys(
            (
                "without_id", "without_timestamp", "without_signature", "changed_id",
                "changed_timestamp", "too_old", "too_new", "odd_timestamp",
            ),
            "accepted",
        ),
    }  # fmt: skip

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        right = "sha256=" + hmac.digest(self.secret.encode(), body, "sha256").hex()
        return hmac.compare_digest(headers.get("X-Webhook-Signature", ""), right)


class FallsBack(VerifiesTheOldSignature):
    finds: ClassVar = {"without_signature": "accepted"}

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        if "webhook-signature" in headers:
            return Careful.genuine(self, headers, body)
        return super().genuine(headers, body)


class WantsBoth(VerifiesTheOldSignature):
    finds: ClassVar = {"rotation_second": "refused"}

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        return Careful.genuine(self, headers, body) and super().genuine(headers, body)


class TakesTheFirst(Careful):
    finds: ClassVar = {"rotation_second": "refused"}

    def given(self, value: str) -> list[str]:
        return super().given(value)[:1]


class TakesTheLast(Careful):
    finds: ClassVar = {"rotation_first": "refused"}

    def given(self, value: str) -> list[str]:
        return super().given(value)[-1:]


TakesTheWholeHeader = varied(
    "TakesTheWholeHeader",
    {"rotation_first": "refused", "rotation_second": "refused", "newer_signatures": "refused"},
    given=lambda self, value: [value],
)


class RefusesNewerVersions(Careful):
    finds: ClassVar = {"newer_signatures": "refused"}

    def given(self, value: str) -> list[str]:
        every = value.split(" ")
        return every if all(one.startswith("v1,") for one in every) else []


TakesAnyVersion = varied(
    "TakesAnyVersion",
    {"other_version": "accepted"},
    given=lambda self, value: [f"v1,{one.partition(',')[2]}" for one in value.split(" ")],
)
HasNoTolerance = varied(
    "HasNoTolerance", {"too_old": "accepted", "too_new": "accepted"}, near=lambda self, ahead: True
)
ForgetsTheFuture = varied(
    "ForgetsTheFuture", {"too_new": "accepted"}, near=lambda self, ahead: ahead >= -300
)
ForgetsThePast = varied(
    "ForgetsThePast", {"too_old": "accepted"}, near=lambda self, ahead: ahead <= 300
)
AllowsAnHour = varied(
    "AllowsAnHour",
    {"too_old": "accepted", "too_new": "accepted"},
    near=lambda self, ahead: abs(ahead) <= 3600,
)
AllowsHalfAMinute = varied(
    "AllowsHalfAMinute", {"clock_difference": "refused"}, near=lambda self, ahead: abs(ahead) <= 30
)


class ReadsTheTimeOfTheEvent(Careful):
    finds: ClassVar = {"late_event": "refused"}

    def fresh(self, headers: Mapping[str, str]) -> bool:
        at = headers.get("X-Webhook-Timestamp", "0")
        return super().fresh(headers) and abs(int(at) - time.time()) <= 300


class FailsWithoutAnId(Careful):
    finds: ClassVar = {"unsigned": "crashed", "without_id": "crashed"}

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        assert headers["webhook-id"]
        return super().genuine(headers, body)


FailsAtWords = varied(
    "FailsAtWords",
    {"odd_timestamp": "crashed"},
    fresh=lambda self, headers: self.near(int(headers.get("webhook-timestamp", "0")) - time.time()),
)


class WritesAgain(Careful):
    finds: ClassVar = {"spaced_body": "accepted", "longer_body": "accepted", "no_body": "crashed"}

    def read(self, body: bytes) -> bytes:
        return json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=self.ascii).encode()

    ascii = False


WritesAgainInAscii = varied(
    "WritesAgainInAscii",
    {
        **WritesAgain.finds,
        "letters": "refused",
        "largest_body": "refused",
        "spare_body": "refused",
        "kept_connection": "refused",
    },
    base=WritesAgain,
    ascii=True,
)
Trims = varied("Trims", {"longer_body": "accepted"}, read=lambda self, body: body.strip())


class PassesAnEmptyBody(Careful):
    finds: ClassVar = {"no_body": "accepted"}

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        return not body or super().genuine(headers, body)


FindsNoneWrong = varied(
    "FindsNoneWrong",
    {
        "empty_signature": "accepted",
        "without_signature": "accepted",
        "rotation_first": "refused",
        "rotation_second": "refused",
        "other_version": "accepted",
    },
    judge=lambda self, given, rights: all(
        self.same(one, right) for one in given for right in rights
    ),
)
ComparesTheStart = varied(
    "ComparesTheStart",
    {"empty_signature": "accepted", "short_signature": "accepted"},
    same=lambda self, one, right: right.startswith(one),
)
IgnoresCase = varied(
    "IgnoresCase",
    {"other_case": "accepted"},
    same=lambda self, one, right: one.lower() == right.lower(),
)
LooksAtTheForm = varied(
    "LooksAtTheForm",
    {
        one: "accepted" for one in WRONG
        if one not in (
            "unsigned", "without_timestamp", "without_signature", "empty_signature", "too_old",
            "too_new", "odd_timestamp", "other_version",
        )
    },
    same=lambda self, one, right: bool(FORM.fullmatch(one)),
)  # fmt: skip


class HasAnEmptySecret(Careful):
    finds: ClassVar = {"empty_secret": "accepted"}

    def keys(self) -> Iterable[bytes]:
        return [*super().keys(), b""]


class RefusesADuplicate(Careful):
    finds: ClassVar = {"duplicate": "refused", "duplicates_at_once": "refused"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        event_id = request.headers["webhook-id"]
        if event_id in self.seen:
            return web.Response(status=409)
        self.seen.add(event_id)
        return web.Response(status=204)


class FailsAtARace(Careful):
    finds: ClassVar = {"duplicates_at_once": "crashed"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        event_id = request.headers["webhook-id"]
        if event_id in self.seen:
            return web.Response(status=500)
        self.seen.add(event_id)
        await turns()  # the insert of another one waits for this one
        self.seen.discard(event_id)
        return web.Response(status=204)


class RefusesOlderVersions(Careful):
    finds: ClassVar = {"reordered": "refused"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        version = int(request.headers["X-Webhook-Record-Version"])
        older = version == 2 and self.newest == 1
        self.newest = 1 if version == 3 else 0 if version == 2 else self.newest
        return web.Response(status=409 if older else 204)


class RefusesUnknownEvents(Careful):
    finds: ClassVar = {"unknown_event": "refused"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        known = not json.loads(body)["event"].startswith("certification.")
        return web.Response(status=204 if known else 422)


class RefusesWhatItDoesNotUse(Careful):
    finds: ClassVar = {
        "every_event": "refused", "unknown_event": "refused",
    }  # fmt: skip

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        used = json.loads(body)["event"].startswith("contact.")
        return web.Response(status=204 if used else 404)


class RefusesUnknownFields(Careful):
    finds: ClassVar = {"unknown_field": "refused", "spare_body": "refused"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=400 if "addedLater" in json.loads(body)["data"] else 204)


class RefusesUnknownHeaders(Careful):
    finds: ClassVar = {"more_headers": "refused"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        ours = [name for name in request.headers if name.lower().startswith("x-webhook-")]
        return web.Response(status=204 if all(map(KNOWN.fullmatch, ours)) else 400)


ReadsHeadersByCase = varied(
    "ReadsHeadersByCase",
    {"header_names": "refused"},
    headers=lambda self, request: {
        name.decode(): value.decode() for name, value in request.raw_headers
    },
)


class TakesSmallBodies(Careful):
    finds: ClassVar = {
        "largest_body": "refused", "spare_body": "refused", "kept_connection": "refused",
    }  # fmt: skip
    most = 1024

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=413 if len(body) > self.most else 204)


TakesNoSpareBytes = varied(
    "TakesNoSpareBytes", {"spare_body": "refused"}, base=TakesSmallBodies, most=16 * 1024
)


class FailsUnderLoad(Careful):
    finds: ClassVar = {"many_at_once": "crashed"}
    status = 500

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        self.running += 1
        try:
            await turns()
            return web.Response(status=self.status if self.running > 8 else 204)
        finally:
            self.running -= 1


AsksForFewer = varied("AsksForFewer", {"many_at_once": "limited"}, base=FailsUnderLoad, status=429)


class WorksFirst(Careful):
    finds: ClassVar = {"quick": "slow"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        self.worked += 10 * (b'"deal.created"' in body)
        return web.Response(status=204)


class WorksTooLong(Careful):
    finds: ClassVar = {"every_event": "late"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        if b'"deal.created"' in body:
            self.worked += 999
            await until(lambda: request.transport is None)
        return web.Response(status=204)


class NeverEnds(Careful):
    finds: ClassVar = {"response_ends": "endless"}

    async def accept(self, request: web.Request, body: bytes) -> web.StreamResponse:
        if b'"deal.created"' not in body:
            return web.Response(status=204)
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"a" * 65_536)
        return answer


Redirects = varied(
    "Redirects", {"genuine": "redirect"}, accept=says(status=308, headers={"Location": "/hook/"})
)
IsGone = varied("IsGone", {"genuine": "gone"}, accept=says(status=410))
IsDown = varied("IsDown", {"genuine": "overloaded"}, accept=says(status=502))
EndsTheWebhook = varied("EndsTheWebhook", dict.fromkeys(WRONG, "gone"), refusal=410)
SendsToTheSignIn = varied("SendsToTheSignIn", dict.fromkeys(WRONG, "redirect"), refusal=302)
FailsAtWrongOnes = varied("FailsAtWrongOnes", dict.fromkeys(WRONG, "crashed"), refusal=500)


class HangsUpOnWrongOnes(Careful):
    finds: ClassVar = dict.fromkeys(WRONG, "closed")

    async def refuse(self, request: web.Request, body: bytes) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response(status=401)


class TellsTheSignature(Careful):
    finds: ClassVar = {"silent": "told"}

    async def refuse(self, request: web.Request, body: bytes) -> web.StreamResponse:
        [key] = self.keys()
        return web.Response(status=401, text=f"expected {self.right(request.headers, body, key)}")


class TellsTheSecret(Careful):
    finds: ClassVar = {"silent": "told"}

    async def refuse(self, request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=401, headers={"X-Debug": self.secret})


UsesTheTextAsKey = varied(
    "UsesTheTextAsKey", {"genuine": "key_text"}, keys=lambda self: [self.secret.encode()]
)
UsesTheTextBehindThePrefix = varied(
    "UsesTheTextBehindThePrefix",
    {"genuine": "key_without_prefix"},
    keys=lambda self: [self.secret.removeprefix("whsec_").encode()],
)
HasNoSecret = varied("HasNoSecret", {"genuine": "key_empty"}, keys=lambda self: [b""])
ComparesHexadecimal = varied(
    "ComparesHexadecimal", {"genuine": "hexadecimal"}, encoded=lambda self, digest: digest.hex()
)
SignsTheBodyAlone = varied(
    "SignsTheBodyAlone", {"genuine": "body_alone"}, content=lambda self, headers, body: body
)


class DecodesTheOldKey(VerifiesTheOldSignature):
    finds: ClassVar = {"genuine": "github_key"}

    def genuine(self, headers: Mapping[str, str], body: bytes) -> bool:
        [key] = self.keys()
        right = "sha256=" + hmac.digest(key, body, "sha256").hex()
        return hmac.compare_digest(headers.get("X-Webhook-Signature", ""), right)


HasAnotherSecret = varied(
    "HasAnotherSecret", {"genuine": "refused"}, keys=lambda self: [b"another"]
)


class HasAnotherPath(Careful):
    finds: ClassVar = {"genuine": "refused"}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=404)


FAULTY: tuple[type[Careful], ...] = tuple(
    one
    for one in list(globals().values())
    if isinstance(one, type) and issubclass(one, Careful) and one is not Careful
)

"""Run the checks of a certification against one receiver, within a bound of time."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.sending.outcome import Outcome
from outbox.sending.request import Request, key_of
from outbox.sending.response_body import show
from outbox.sending.send import Sender
from outbox.worker.certification.checks import CHECKS, GENUINE, SEEN, Check
from outbox.worker.certification.judging import (
    Code,
    Finding,
    Tried,
    judge,
    quick,
    response_ends,
    silent,
)
from outbox.worker.certification.posts import Kit, Post

Result = Literal["passed", "failed", "unjudged"]
Heard = Callable[[Finding], None]


@dataclass(frozen=True, slots=True)
class Certification:
    """What all checks have found. `passed` may have warnings."""

    url: str
    findings: tuple[Finding, ...]
    accepted: tuple[str, ...]
    """The ids of the events that the receiver has accepted: it must have each of them once."""
    forbidden: tuple[str, ...]
    """The ids of requests that it must refuse: it must have none of them."""
    sent: int
    started_at: int
    micros: int

    @property
    def result(self) -> Result:
        """Return `failed` with any fault, else `unjudged` with any check that told nothing."""
        found = {finding.verdict for finding in self.findings}
        return "failed" if "failed" in found else "unjudged" if "unjudged" in found else "passed"


@dataclass(frozen=True, slots=True)
class Limits:
    """The timeout of a request, and the time for all, in seconds."""

    timeout_s: float
    seconds: float
    turn: asyncio.Lock
    """Held by the one burst that runs at a time."""


class Certifier:
    """Certifies one receiver once."""

    def __init__(
        self, request: Request, kit: Kit, sender: Sender, clock: Clock, limits: Limits
    ) -> None:
        self._url = request.url
        self._via = request.via
        self._kit = kit
        self._sender = sender
        self._clock = clock
        self._limits = limits
        self._ends = clock.monotonic() + limits.seconds
        self._sent = 0
        self._alone: list[Tried] = []
        """What was sent one at a time."""
        self._told: list[Tried] = []
        self._accepted: dict[str, None] = {}
        self._forbidden: dict[str, None] = {}

    async def run(self, heard: Heard) -> Certification:
        """Run all checks; `heard` gets each finding as soon as it is there."""
        began, started_at = self._clock.monotonic(), self._clock.wall()
        findings: list[Finding] = []

        def add(finding: Finding) -> None:
            findings.append(finding)
            heard(finding)

        genuine = await self._checked(GENUINE)
        if genuine.code == "refused":
            genuine = await self._explained(genuine)
        add(genuine)
        for check in CHECKS:
            # A receiver that refuses everything would pass half of them.
            add(
                Finding(check.name, "unjudged", "not_sent")
                if genuine.verdict != "passed"
                else await self._checked(check)
            )
        for finding in self._seen(judged=genuine.verdict == "passed"):
            add(finding)
        return Certification(
            url=self._url,
            findings=tuple(findings),
            accepted=tuple(self._accepted),
            forbidden=tuple(self._forbidden),
            sent=self._sent,
            started_at=started_at,
            micros=round((self._clock.monotonic() - began) * SECOND),
        )

    def _seen(self, *, judged: bool) -> Iterator[Finding]:
        if not judged:
            yield from (Finding(name, "unjudged", "not_sent") for name in SEEN[:2])
        else:
            yield quick(self._alone, self._limits.timeout_s)
            yield response_ends(self._alone)
        yield silent(self._told, self._sent)

    async def _checked(self, check: Check) -> Finding:
        if self._left() <= 0:
            return Finding(check.name, "unjudged", "out_of_time")
        posts = check.posts(self._kit)
        if check.way == "at_once":
            tried = await self._at_once([*posts])
            if not tried:
                return Finding(check.name, "unjudged", "out_of_time")
        else:
            tried = [await self._send(post, fresh=check.way == "apart") for post in posts]
            self._alone += tried
        self._note(check, tried)
        return judge(check, tried, self._limits.timeout_s)

    async def _at_once(self, posts: Sequence[Post]) -> list[Tried]:
        """Send all at the same time; nothing when the time ends before their turn."""
        # Bursts of several certifications take turns, so that one process opens no more at a time.
        turn = self._limits.turn
        try:
            async with asyncio.timeout(self._left()):
                await turn.acquire()
        except TimeoutError:
            return []
        try:
            return [*await asyncio.gather(*(self._send(post, fresh=True) for post in posts))]
        finally:
            turn.release()

    def _note(self, check: Check, tried: Iterable[Tried]) -> None:
        for one in tried:
            if not check.accepts:
                self._forbidden[one.post.value("webhook-id") or one.post.event_id] = None
            elif one.outcome.outcome == "success":
                self._accepted[one.post.event_id] = None

    async def _send(self, post: Post, *, fresh: bool) -> Tried:
        left = self._left()
        timeout = max(min(self._limits.timeout_s, left), 0.0)
        outcome = await self._sender.send(
            self._url, post.headers, post.body, timeout, fresh=fresh, via=self._via
        )
        if outcome.stale:
            # The receiver closed an idle connection; a delivery is sent again at once too.
            outcome = await self._sender.send(
                self._url, post.headers, post.body, timeout, fresh=True, via=self._via
            )
        self._sent += 1
        cut = outcome.outcome == "timeout" and left < self._limits.timeout_s
        trial = Tried(post, outcome, cut)
        if self._tells(post, outcome):
            self._told.append(trial)
        return trial

    def _tells(self, post: Post, outcome: Outcome) -> bool:
        headers, body = outcome.response_headers, outcome.response_body
        told = show(headers, body, truncated=outcome.truncated).text
        shown = told + body.decode("latin-1") + "".join(value for _, value in headers)
        # A right signature that the request itself had is no news.
        given = "".join(value for _, value in post.headers)
        return any(text in shown and text not in given for text in self._kit.secret_texts(post))

    async def _explained(self, genuine: Finding) -> Finding:
        """Find out by which wrong signature the receiver accepts, if by any."""
        for code, post in _misread(self._kit):
            tried = await self._send(post, fresh=True)
            if tried.outcome.outcome == "success":
                return Finding(
                    check=genuine.check,
                    verdict="failed",
                    code=code,
                    status=genuine.status,
                    error=None,
                    micros=genuine.micros,
                    event=genuine.event,
                    sent=genuine.sent,
                    wrong=genuine.wrong,
                )
        return genuine

    def _left(self) -> float:
        return self._ends - self._clock.monotonic()


def _misread(kit: Kit) -> Iterator[tuple[Code, Post]]:
    """Yield signatures by the usual mistakes, for a receiver that refuses the right ones."""
    bare = kit.secret.partition("_")[2]
    keys: tuple[tuple[Code, bytes], ...] = (
        ("key_text", kit.secret.encode()),
        ("key_without_prefix", bare.encode()),
        ("key_empty", b""),
        ("github_key", key_of(kit.secret)),
    )
    for code, key in keys:
        yield code, kit.by_key(kit.post(), key)
    post = kit.post()
    digest = kit.digest(post.body, post.value("webhook-timestamp"), post.event_id)
    yield "hexadecimal", post.having(webhook_signature=f"v1,{digest.hex()}")
    alone = base64.b64encode(hmac.digest(key_of(kit.secret), post.body, "sha256")).decode()
    yield "body_alone", post.having(webhook_signature=f"v1,{alone}")
    for body in _reserialized(post.body):
        mac = kit.mac(body, post.value("webhook-timestamp"), post.event_id)
        yield "reserialized", post.having(webhook_signature=f"v1,{mac}")


def _reserialized(body: bytes) -> Iterator[bytes]:
    """Yield a body as Python and PHP write it by default, when they have parsed it."""
    parsed = json.loads(body)
    yield json.dumps(parsed).encode()
    yield json.dumps(parsed, separators=(",", ":")).replace("/", "\\/").encode()

"""Asks receivers for permission before the first request, and keeps their answers in memory.

A process asks again after a day, after a change of the webhook, and before each attempt that
follows a refusal: a refusal is a failed attempt, so that its retries and probes ask again.
"""

from __future__ import annotations

import asyncio

from outbox.clock import Clock
from outbox.durations import DAY, SECOND
from outbox.sending import permission
from outbox.sending.outcome import Outcome
from outbox.sending.permission import Permission, Refused
from outbox.sending.request import Request
from outbox.sending.send import Objection, Sender

KEPT_SECONDS = DAY // SECOND
REMEMBERED = 10_000

Answer = tuple[Permission | None, Outcome | None]
"""What was answered now, None for what is known; and the outcome of the attempt if refused."""
KNOWN: Answer = None, None


class Permissions:
    """The permissions of one process's webhooks, by webhook and version."""

    def __init__(self, sender: Sender, clock: Clock, service: str) -> None:
        self._sender = sender
        self._clock = clock
        self._service = service
        self._until: dict[tuple[str, int], float] = {}
        self._asking: dict[tuple[str, int], asyncio.Future[Answer]] = {}

    async def answer(
        self, webhook_id: str, version: int, request: Request, objection: Objection
    ) -> Answer:
        """Return the answer of the receiver of `request`; several attempts share one question."""
        key = webhook_id, version
        while self._until.get(key, 0.0) <= self._clock.monotonic():
            asking = self._asking.get(key)
            if asking is None:
                return await self._ask(key, request, objection)
            [ended], _ = await asyncio.wait([asking])
            if not ended.cancelled():
                return None, ended.result()[1]
        return KNOWN

    async def _ask(self, key: tuple[str, int], request: Request, objection: Objection) -> Answer:
        asking = self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            answer = await self.ask(request, key[1], objection)
            if answer[1] is None:
                if len(self._until) >= REMEMBERED:
                    # Not all: the webhooks of one owner would let all others ask again.
                    del self._until[next(iter(self._until))]
                self._until[key] = self._clock.monotonic() + KEPT_SECONDS
            asking.set_result(answer)
            return answer
        finally:
            # Whoever waits asks by itself when this was cancelled.
            asking.cancel()
            del self._asking[key]

    async def ask(
        self, request: Request, version: int, objection: Objection | None = None
    ) -> Answer:
        """Send OPTIONS to the receiver of `request`; keep nothing."""
        asker = request.asks_as
        assert asker is not None
        outcome = await self._sender.send(
            request.url, permission.question(request, self._service), b"",
            request.timeout_s, fresh=True, objection=objection or _none, via=request.via,
            method=permission.METHOD,
        )  # fmt: skip
        if outcome.outcome in ("aborted", "blocked", "proxy_error"):
            return None, outcome
        try:
            rate = permission.read(outcome.response_headers, asker)
        except Refused as refused:
            refusal = permission.refusal(outcome, str(refused), asker)
            return Permission(version, granted=False), refusal
        return Permission(version, granted=True, rate=rate), None


def _none() -> None:
    """Object to nothing."""

"""The access tokens of webhooks whose receivers want one: kept in memory, each by one task.

However many deliveries of a webhook wait for a token, one request gets it; no other webhook and no
other process uses it. It is renewed before its end, and forgotten with a change of its webhook.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from outbox.clock import Clock
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.oddities import BETWEEN, NOTES
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.request import Request
from outbox.sending.send import Sender
from outbox.sending.token_request import AccessToken, Fetched, fetch

MOST = 10_000
"""Webhooks whose tokens are kept."""
YOUNG_SECONDS = 60.0
"""A delivery that is repeated gets a token of at most this age: another process, whose token was
refused, may have sent it before."""
PAUSE_SECONDS = 5.0
"""Between renewals that fail while the token still lasts."""
UNAUTHORIZED, FORBIDDEN = 401, 403
HEADER = "Authorization"

log = structlog.get_logger("outbox")


@dataclass(slots=True)
class _Entry:
    credentials: ClientCredentials
    token: AccessToken | None = None
    task: asyncio.Task[Fetched] | None = None
    again_at: float = 0.0


class AccessTokens:
    """The tokens of one process; call every method on the loop's thread."""

    def __init__(self, sender: Sender, clock: Clock, service: str) -> None:
        self._sender = sender
        self._clock = clock
        self._service = service
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._tasks: set[asyncio.Task[Fetched]] = set()

    async def authorize(
        self, webhook_id: str, request: Request, *, repeated: bool = False
    ) -> Outcome | None:
        """Add a token to the headers of `request`; return the outcome when there is none.

        `repeated`: the attempt before this one did not count.
        """
        entry = self._entry(webhook_id, request)
        token, now = entry.token, self._clock.monotonic()
        if (
            token is None
            or now >= token.ends_at
            or (repeated and now > token.since + YOUNG_SECONDS)
        ):
            # Shielded: others may wait for the same token.
            fetched = await asyncio.shield(entry.task or self._start(webhook_id, entry, request))
            token = fetched.token
            if token is None:
                return fetched.refusal()
        elif now >= max(token.renewed_at, entry.again_at) and entry.task is None:
            self._start(webhook_id, entry, request)
        request.headers = (*request.headers, (HEADER, token.authorization))
        return None

    def judge(self, webhook_id: str, request: Request, outcome: Outcome, *, repeated: bool) -> None:
        """Forget the token of `request` if its receiver has refused it.

        The first time the outcome does not count, so that the delivery is sent again at once.
        """
        if outcome.status not in (UNAUTHORIZED, FORBIDDEN):
            return
        entry = self._entries.get(webhook_id)
        used = request.headers[-1][1]
        if entry is not None and entry.token is not None and entry.token.authorization == used:
            entry.token = None
        if outcome.status == UNAUTHORIZED and not repeated:
            outcome.stale = True
            outcome.error = BETWEEN.join(filter(None, (outcome.error, NOTES["token"])))

    def forget(self, webhook_ids: Collection[str]) -> None:
        """Forget the tokens of webhooks that have changed; those on their way are used once."""
        for webhook_id in webhook_ids:
            self._entries.pop(webhook_id, None)

    async def close(self) -> None:
        """Forget all tokens, and end the requests for them."""
        self._entries.clear()
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _entry(self, webhook_id: str, request: Request) -> _Entry:
        entry = self._entries.get(webhook_id)
        credentials = request.oauth2
        assert credentials is not None
        if entry is None or entry.credentials != credentials:
            if len(self._entries) >= MOST:
                self._entries.popitem(last=False)
            entry = self._entries[webhook_id] = _Entry(credentials)
        return entry

    def _start(self, webhook_id: str, entry: _Entry, request: Request) -> asyncio.Task[Fetched]:
        task = asyncio.get_running_loop().create_task(self._fetch(webhook_id, entry, request))
        entry.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _fetch(self, webhook_id: str, entry: _Entry, request: Request) -> Fetched:
        """Request a token; never raise."""
        began = self._clock.monotonic()
        try:
            # A copy: by the time of a renewal its delivery has added a token to the headers.
            fetched = await fetch(self._sender, self._clock, replace(request), self._service)
        except Exception as fault:
            log.exception("token_request_failed", webhook_id=webhook_id)
            failure = f"the token endpoint failed: internal error ({type(fault).__name__})"
            seconds = self._clock.monotonic() - began
            fetched = Fetched(unanswered("token_error", failure, seconds), failure=failure)
        finally:
            entry.task = None
        if fetched.token is not None:
            entry.token = fetched.token
        elif entry.token is not None:
            # No delivery tells of it: the token lasts for some more.
            entry.again_at = self._clock.monotonic() + PAUSE_SECONDS
            log.warning("token_not_renewed", webhook_id=webhook_id, reason=fetched.failure)
        return fetched

"""The requests in flight of one worker, from a claimed delivery to its result.

It is one module because each request passes all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.observer import Observer
from outbox.queue.state.claimed_deliveries import Claimed, Endpoint, Result
from outbox.queue.state.evidence import Evidence
from outbox.queue.state.policy import (
    Decision,
    Schedule,
    WindowStep,
    again,
    cancelled,
    dead,
    decide,
    parked,
    probed,
)
from outbox.queue.upkeep import personal_data
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.permission import Permission
from outbox.sending.request import Header, Request, compose, kept, span_of
from outbox.sending.send import CutShort, Objection, Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker.access_tokens import AccessTokens
from outbox.worker.journal import kind_of
from outbox.worker.permissions import Permissions
from outbox.worker.request_building import (
    Erased,
    Links,
    RequestBuilder,
    Unreadable,
    Unsendable,
)
from outbox.worker.send_counts import Sending
from outbox.worker.windows import Windows

HELD_UP_SECONDS = 5.0
"""After so long without a turn, of which one a second is usual, this node has held deliveries up;
what starts within as long after that has waited for it."""
CUT_OFF = "aborted by the shutdown of this node"
TOO_MANY = "aborted: too many requests without a response were open"
CHANGED = "the webhook was changed before the request was sent"

log = structlog.get_logger("outbox")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How this worker sends. `service` is the product in User-Agent; `timeout` is in seconds.

    `links` returns the address of a record for thin events; `site` is the public address of the
    server, for CloudEvents and handshakes.
    """

    slots: int = 256
    timeout: float = 15.0
    schedule: Schedule = field(default_factory=Schedule)
    service: str = "Carteiro"
    links: Links | None = None
    site: str | None = None
    needed: Evidence = field(default_factory=Evidence)
    """The evidence that disables a webhook after days of failures."""


class Sends:
    """Starts requests and passes each result to `put`; call every method on the loop's thread.

    A failure affects only its own delivery: it ends, or is retried by its schedule. `objection`
    returns why nothing may be sent now.
    """

    def __init__(
        self,
        sender: Sender,
        ring: KeyRing,
        *,
        clock: Clock,
        ids: Ids,
        settings: WorkerSettings,
        observer: Observer,
        objection: Objection,
        put: Callable[[Result], None],
    ) -> None:
        self.windows = Windows(settings.slots)
        self._sender = sender
        self._clock = clock
        self._ids = ids
        self._settings = settings
        self._observer = observer
        self._objection = objection
        self._put = put
        self._builder = RequestBuilder(
            ring, settings.timeout, settings.schedule, settings.links, settings.site
        )
        self._tokens = AccessTokens(sender, clock, settings.service)
        self._permissions = Permissions(sender, clock, settings.service)
        self._tasks: dict[asyncio.Task[None], tuple[Claimed, Request, Sending, str]] = {}
        self._by_sending: dict[Sending, asyncio.Task[None]] = {}
        self._stale: set[str] = set()
        self._took_at: float | None = None
        self._held_up = (0.0, 0.0)
        """Between which moments this node took nothing, the last time that this was long."""

    def __len__(self) -> int:
        return len(self._tasks)

    def held(self) -> set[str]:
        """Ids of the deliveries in flight."""
        return {delivery.id for delivery, _, _, _ in self._tasks.values()}

    def took(self) -> None:
        """Note a turn of the claimer, before its sends start."""
        now = self._clock.monotonic()
        if self._took_at is not None and now - self._took_at > HELD_UP_SECONDS:
            self._held_up = (self._took_at, now)
        self._took_at = now

    def watch_changes(self) -> None:
        """Start to record changed webhooks: later claims may have older data."""
        self._stale.clear()

    def changed(self, webhook_ids: Collection[str]) -> None:
        """Withdraw unsent requests of these webhooks, and forget their access tokens."""
        self._stale.update(webhook_ids)
        self._tokens.forget(webhook_ids)
        for _, _, sending, _ in self._tasks.values():
            if sending.webhook_id in webhook_ids:
                sending.objection = CHANGED

    def start(
        self, claimed: Iterable[Claimed], endpoints: Mapping[str, Endpoint], node_id: str
    ) -> None:
        """Send these; deliveries that cannot be sent get their results at once."""
        wall, now = self._clock.wall(), self._clock.monotonic()
        for delivery in claimed:
            endpoint = endpoints.get(delivery.webhook_id)
            try:
                self._start(delivery, endpoint, node_id, wall, now)
            except Erased:
                self._put_unsent(delivery, endpoint, node_id, cancelled(personal_data.REASON))
            except Unreadable as reason:
                self._put_unsent(delivery, endpoint, node_id, parked(str(reason)))
            except Unsendable as reason:
                self._put_unsent(delivery, endpoint, node_id, dead(str(reason)))
            except Exception as fault:
                log.exception("start_failed", **_ids_of(delivery), node=node_id)
                # Record a failed attempt, so that only the schedule retries it.
                outcome = _internal(fault, 0.0)
                decision = self._decide(delivery, outcome, self._settings.schedule, wall)
                self._put_unsent(delivery, endpoint, node_id, decision, outcome)

    def take_slots_back(self) -> float | None:
        """Take the slots of slow sends back, and cut those above the limit.

        Return seconds until the next send becomes slow, None when there is none.
        """
        soon, cut = self.windows.take_slots_back(self._clock.monotonic())
        for sending in cut:
            self._observer.cut()
            self._by_sending[sending].cancel()
        return soon

    def end_all(self) -> None:
        """Abort every send in flight; the results are `aborted`."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Forget all access tokens."""
        await self._tokens.close()

    def _start(
        self, delivery: Claimed, endpoint: Endpoint | None, node_id: str, wall: int, now: float
    ) -> None:
        if endpoint is None:
            raise Unsendable("webhook deleted")
        if endpoint.id in self._stale:
            self._put_unsent(delivery, endpoint, node_id, again("webhook changed"))
            return
        request, schedule = self._builder.request(delivery, endpoint, wall)
        sending = self.windows.start(delivery, endpoint.failures > 0, now)
        task = asyncio.get_running_loop().create_task(
            self._send(delivery, request, schedule, sending, node_id, endpoint.version)
        )
        self._tasks[task] = (delivery, request, sending, node_id)
        self._by_sending[sending] = task
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        delivery, request, sending, node_id = self._tasks.pop(task)
        del self._by_sending[sending]
        if not task.cancelled() and task.exception() is None:
            return
        # Cancelled before its first step, or ended by an internal error; it reports all else
        # itself.
        if not sending.done:
            self._finish(sending, "keep", self._clock.monotonic())
        outcome = _aborted(sending, 0.0)
        self._hand_over(delivery, again("aborted"), outcome, request.url, node_id)

    async def _send(
        self,
        delivery: Claimed,
        request: Request,
        schedule: Schedule,
        sending: Sending,
        node_id: str,
        version: int,
    ) -> None:
        """Make one attempt, from signing to the decision; never raise."""
        wall = self._clock.wall()
        headers: list[tuple[str, str]] = []
        permission: Permission | None = None
        refused: Outcome | None = None
        began = self._clock.monotonic()
        attempt = delivery.attempt
        lag = max(attempt.lag_us / SECOND, 0.0) + began - sending.started
        # The wait for other requests to the same receiver is no lag of this node.
        lag = min(lag, began - sending.open_since)
        kind = kind_of(delivery)
        since, until = self._held_up
        if kind == "first" and not delivery.ordered and sending.started - until < HELD_UP_SECONDS:
            # The pause of this node delayed it, even if requests to the same receiver went first.
            # Later starts do not count: a slow receiver may be why they are late.
            lag = max(lag, until - max(sending.started - attempt.waited_us / SECOND, since))
        self._observer.started(kind, lag, sending.limited)
        repeated = attempt.number > attempt.tries + 1
        try:
            if request.oauth2 is not None:
                refused = await self._tokens.authorize(
                    delivery.webhook_id, request, repeated=repeated
                )
            if refused is None and request.asks_as is not None:
                permission, refused = await self._permissions.answer(
                    delivery.webhook_id,
                    version,
                    request,
                    lambda: sending.objection or self._objection(),
                )
            if refused is None and (request.oauth2 is not None or request.asks_as is not None):
                wall, began = self._clock.wall(), self._clock.monotonic()
            if refused is None:
                span_id = span_of(delivery.id, attempt.number) if request.traceparent else ""
                headers = compose(
                    request, service=self._settings.service, now_wall=wall, span_id=span_id
                )
                outcome = await self._sender.send(
                    request.url, headers, request.body, request.timeout_s,
                    # After an attempt that did not count, such as one on a closed connection.
                    fresh=attempt.probe or repeated,
                    objection=lambda: sending.objection or self._objection(),
                    via=request.via,
                )  # fmt: skip
            else:
                # A copy: several attempts share one answer to a handshake.
                outcome = replace(refused)
            if request.oauth2 is not None:
                self._tokens.judge(delivery.webhook_id, request, outcome, repeated=repeated)
        except CutShort as cut:
            # Only the response to a handshake says nothing of the event, which was not sent.
            outcome = cut.outcome if headers else _aborted(sending, self._clock.monotonic() - began)
        except asyncio.CancelledError:
            outcome = _aborted(sending, self._clock.monotonic() - began)
        except Exception as fault:
            log.exception("send_failed", **_ids_of(delivery), node=node_id)
            outcome = _internal(fault, self._clock.monotonic() - began)
        decision = self._decide(delivery, outcome, schedule, wall + outcome.total_us)
        self._finish(sending, decision.window, began + outcome.total_us / SECOND)
        self._hand_over(
            delivery, decision, outcome, request.url, node_id,
            started_at=wall, headers=kept(headers, request.form), permission=permission,
        )  # fmt: skip

    def _finish(self, sending: Sending, window: WindowStep, now: float) -> None:
        width = self.windows.finish(sending, window, now)
        if window != "keep" or sending.slow:
            self._observer.window(sending.webhook_id, width)

    def _decide(
        self, delivery: Claimed, outcome: Outcome, schedule: Schedule, ended: int
    ) -> Decision:
        # Only the time of a retry needs dice.
        dice = 0.0 if outcome.outcome == "success" else self._ids.dice()
        decision = decide(
            outcome, tries=delivery.attempt.tries, schedule=schedule, dice=dice,
            now_wall_s=ended / SECOND,
        )  # fmt: skip
        return probed(decision) if delivery.attempt.probe else decision

    def _put_unsent(
        self,
        delivery: Claimed,
        endpoint: Endpoint | None,
        node_id: str,
        decision: Decision,
        outcome: Outcome | None = None,
    ) -> None:
        url = endpoint.url if endpoint else ""
        self._hand_over(delivery, decision, outcome, url, node_id)

    def _hand_over(
        self,
        delivery: Claimed,
        decision: Decision,
        outcome: Outcome | None,
        url: str,
        node_id: str,
        *,
        started_at: int | None = None,
        headers: Sequence[str | Header] = (),
        permission: Permission | None = None,
    ) -> None:
        """Pass on the one result of this delivery; without `started_at` it started just now."""
        at = self._clock.wall() if started_at is None else started_at
        needed = self._settings.needed
        self._put(
            Result(
                delivery=delivery,
                decision=decision,
                outcome=outcome,
                started_at=at,
                request_headers=headers,
                url=url,
                node_id=node_id,
                needed=needed,
                permission=permission,
            )
        )


def _ids_of(delivery: Claimed) -> dict[str, str | None]:
    return {
        "request_id": delivery.event.request_id,
        "event_id": delivery.event.id,
        "delivery_id": delivery.id,
        "webhook_id": delivery.webhook_id,
    }


def _aborted(sending: Sending, seconds: float) -> Outcome:
    if sending.cut:
        return unanswered("timeout", TOO_MANY, seconds)
    return unanswered("aborted", CUT_OFF, seconds)


def _internal(fault: Exception, seconds: float) -> Outcome:
    return unanswered("protocol_error", f"internal error ({type(fault).__name__})", seconds)

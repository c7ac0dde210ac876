"""Examine a receiver: one signed request as a delivery sends it, explained step by step.

Or certify it by many (outbox.worker.certification). It composes, signs, sends and decides with the
functions of the drain, through the same guard, so that its verdict is that of a delivery. It stores
nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.ids import Ids
from outbox.queue.state.claimed_deliveries import Claimed, Endpoint
from outbox.queue.state.policy import Decision, Schedule, dead, decide, parked
from outbox.sending.egress_guard import Guard
from outbox.sending.explained import Step, steps_of, token_steps_of, with_handshake
from outbox.sending.outcome import Outcome
from outbox.sending.request import Header, Request, compose, masked
from outbox.sending.send import Sender
from outbox.sending.token_request import fetch
from outbox.webhooks.secrets import KeyRing
from outbox.worker.access_tokens import HEADER
from outbox.worker.certification.judging import Finding
from outbox.worker.certification.posts import Kit, Material
from outbox.worker.certification.run import Certification, Certifier, Heard, Limits
from outbox.worker.permissions import Permissions
from outbox.worker.request_building import RequestBuilder, Unreadable, Unsendable
from outbox.worker.sends import WorkerSettings

MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class Examination:
    """What one request has shown; without an outcome nothing could be sent."""

    url: str
    steps: tuple[Step, ...]
    outcome: Outcome | None
    decision: Decision
    """What follows for a first attempt with this outcome."""
    schedule: Schedule
    started_at: int
    headers: tuple[Header, ...] = ()
    """The headers of the request, as the delivery log shows them."""

    @property
    def failed(self) -> Step | None:
        """Return the step that failed; None when a delivery would succeed."""
        last = self.steps[-1]
        return last if last.verdict == "failed" else None


class Doctor:
    """Examines receivers for one process, each time over a new connection."""

    def __init__(
        self, guard: Guard, clock: Clock, ids: Ids, settings: WorkerSettings, sender: Sender
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._ids = ids
        self.settings = settings
        self._sender = sender
        self._turn = asyncio.Lock()

    async def examine_webhook(
        self, ring: KeyRing, delivery: Claimed, endpoint: Endpoint
    ) -> Examination:
        """Send `delivery` to its webhook, with the webhook's secret, headers and timeout."""
        now = self._clock.wall()
        try:
            request, schedule = self._builder(ring).request(delivery, endpoint, now)
        except (Unreadable, Unsendable) as reason:
            step = Step("sign", "failed", "unsendable", values={"error": str(reason)})
            decision = (parked if isinstance(reason, Unreadable) else dead)(str(reason))
            return Examination(endpoint.url, (step,), None, decision, self.settings.schedule, now)
        return await self.examine(request, schedule)

    async def examine(self, request: Request, schedule: Schedule | None = None) -> Examination:
        """Send `request` and explain the outcome."""
        schedule = schedule or self.settings.schedule
        steps, refused = await self._authorize(request)
        started_at = self._clock.wall()
        if refused is not None:
            decision = self._decide(refused, schedule)
            return Examination(request.url, tuple(steps), refused, decision, schedule, started_at)
        headers = compose(
            request,
            service=self.settings.service,
            now_wall=started_at,
            span_id=self._ids.token(8).hex(),
        )
        permission, refusal = None, None
        if request.asks_as is not None:
            permission, refusal = await self._permissions().ask(request, 0)
        outcome = refusal or await self._sender.send(
            request.url, headers, request.body, request.timeout_s, fresh=True, via=request.via
        )
        own = steps_of(request.url, outcome, self._guard.rules, request.timeout_s)
        if permission is not None:
            own = with_handshake(own, permission, refusal)
        return Examination(
            url=request.url,
            steps=(*steps, *own),
            outcome=outcome,
            decision=self._decide(outcome, schedule),
            schedule=schedule,
            started_at=started_at,
            headers=() if refusal is not None else tuple(masked(headers, request.form)),
        )

    def _decide(self, outcome: Outcome, schedule: Schedule) -> Decision:
        return decide(
            outcome, tries=0, schedule=schedule, dice=MIDDLE,
            now_wall_s=self._clock.wall() / SECOND,
        )  # fmt: skip

    async def _authorize(self, request: Request) -> tuple[list[Step], Outcome | None]:
        """Add a new access token to the headers of `request` if its receiver wants one.

        Return the steps of the request for it, and the outcome when there is none.
        """
        if request.oauth2 is None:
            return [], None
        fetched = await fetch(self._sender, self._clock, request, self.settings.service)
        steps = token_steps_of(request.oauth2.token_url, fetched, self._guard.rules)
        if fetched.token is None:
            return steps, fetched.refusal()
        request.headers = (*request.headers, (HEADER, fetched.token.authorization))
        return steps, None

    def request_of(self, ring: KeyRing, delivery: Claimed, endpoint: Endpoint) -> Request:
        """Return the request of a delivery, with the webhook's secret, headers and timeout.

        Raise Unreadable, Unsendable.
        """
        return self._builder(ring).request(delivery, endpoint, self._clock.wall())[0]

    def _builder(self, ring: KeyRing) -> RequestBuilder:
        # Made anew each time: the drain forgets a webhook as soon as it changes.
        settings = self.settings
        return RequestBuilder(
            ring, settings.timeout, settings.schedule, settings.links, settings.site
        )

    def _permissions(self) -> Permissions:
        return Permissions(self._sender, self._clock, self.settings.service)

    async def certify(
        self, request: Request, material: Material, seconds: float, heard: Heard | None = None
    ) -> Certification:
        """Certify the receiver at the URL of `request`, which has its secret, within `seconds`.

        `heard` gets each finding as soon as it is there. Without an access token its receiver
        refuses the first one.
        """
        await self._authorize(request)
        if request.asks_as is not None:
            # As before deliveries; what the receiver answers is for the doctor to tell.
            await self._permissions().ask(request, 0)
        kit = Kit(request, material, self.settings.service, self._clock, self._ids)
        limits = Limits(request.timeout_s, seconds, self._turn)
        certifier = Certifier(request, kit, self._sender, self._clock, limits)
        return await certifier.run(heard or _nobody)

    async def close(self) -> None:
        """Close the connections."""
        await self._sender.close()


def _nobody(finding: Finding) -> None:
    """Hear nothing."""

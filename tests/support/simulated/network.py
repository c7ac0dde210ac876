"""A network with receivers: requests arrive or not, and are answered or not, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from outbox.sending.outcome import Outcome, judge, unanswered
from outbox.sending.request import DIRECT, Via
from outbox.sending.send import Objection, Sender, no_objection
from outbox.states import OutcomeName
from tests.support.simulated.loop import VirtualTime

Mode = Literal["ok", "slow", "500", "429", "410", "hang", "refuse", "drop"]
MODES: tuple[Mode, ...] = ("ok", "slow", "500", "429", "hang", "refuse", "drop")
"""How a receiver behaves; `drop` receives the request and closes the connection."""
STATUS = {"ok": 200, "slow": 200, "500": 500, "429": 429, "410": 410}
RETRY_AFTER = "3"
FASTEST, SLOW = 0.05, 4.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """One request that arrived."""

    at: int
    url: str
    event_id: str
    attempt: str
    body: bytes
    success: bool


class Network:
    """All receivers, and what they have received."""

    def __init__(self, dice: Random) -> None:
        self.modes: dict[str, Mode] = {}
        self.got: list[Receipt] = []
        self.open: Counter[tuple[str, str]] = Counter()
        """Requests under way by URL and event."""
        self.most_open: Counter[tuple[str, str]] = Counter()
        self.started: list[tuple[int, str]] = []
        """The time and the URL of each request that was written."""
        self.dice = dice

    def mode(self, url: str) -> Mode:
        return self.modes.get(url, "ok")


class Connection(Sender):
    """The sender of one simulated process."""

    def __init__(self, network: Network, now: VirtualTime) -> None:
        self._network = network
        self._now = now

    async def send(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        timeout_s: float,
        *,
        fresh: bool = False,
        objection: Objection = no_objection,
        via: Via = DIRECT,
        method: str = "POST",
    ) -> Outcome:
        network, given = self._network, dict(headers)
        began = self._now.monotonic()
        await asyncio.sleep(network.dice.random() * FASTEST)
        refused = objection()
        if refused is not None:
            return unanswered("aborted", refused, self._now.monotonic() - began)
        mode = network.mode(url)
        if mode == "refuse":
            return unanswered("connect_error", "connection refused", 0.0)
        pair = (url, given["X-Webhook-Id"])
        network.started.append((self._now.boot(), url))
        network.open[pair] += 1
        network.most_open[pair] = max(network.most_open[pair], network.open[pair])
        try:
            return await self._answer(mode, url, given, body, timeout_s, began)
        finally:
            network.open[pair] -= 1

    async def _answer(
        self,
        mode: Mode,
        url: str,
        given: dict[str, str],
        body: bytes,
        timeout_s: float,
        began: float,
    ) -> Outcome:
        network = self._network
        status = STATUS.get(mode)
        await asyncio.sleep(network.dice.random() * FASTEST)
        name: OutcomeName = "protocol_error" if status is None else judge(status)
        network.got.append(
            Receipt(
                self._now.boot(), url, given["X-Webhook-Id"], given["X-Webhook-Attempt"], body,
                name == "success",
            )
        )  # fmt: skip
        if mode == "hang":
            await asyncio.sleep(timeout_s)
            return unanswered("timeout", "no response in time", timeout_s)
        await asyncio.sleep(network.dice.random() * (SLOW if mode == "slow" else FASTEST))
        outcome = unanswered(name, "", self._now.monotonic() - began)
        if status is None:
            return replace(outcome, error="the connection was closed")
        return replace(
            outcome, error=None, status=status, response_body=b"{}",
            retry_after=RETRY_AFTER if status == 429 else None,
        )  # fmt: skip

    async def close(self) -> None:
        """There is nothing to close."""

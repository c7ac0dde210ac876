"""The product with a broken rule for the kill ledger: it records results before sending.

Run in place of `python -m gateway`. Each send counts as done, and is sent only after that record is
committed; a kill in between loses it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gateway.__main__ import main
from gateway.server.parts import Parts
from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.queue.state.deliveries import Result
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.send import Sender
from outbox.worker.settling import Settling, Write

WELL = replace(unanswered("success", "", 0.0), status=200, error=None)


class Pledges:
    """Recorded but unsent deliveries: the event is set when the result is recorded."""

    def __init__(self) -> None:
        self.settled: dict[tuple[str, str], asyncio.Event] = {}
        self.tasks: set[asyncio.Task[None]] = set()


PLEDGES = Pledges()


class HastySender(Sender):
    """Reports a send at once, and sends when the report is recorded."""

    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], *rest: Any, **more: Any
    ) -> Outcome:
        [event_id] = [text for name, text in headers if name == "X-Webhook-Id"]
        written = PLEDGES.settled[event_id, url] = asyncio.Event()

        async def later() -> None:
            await written.wait()
            await super(HastySender, self).send(url, headers, *rest, **more)

        task = asyncio.create_task(later())
        PLEDGES.tasks.add(task)
        task.add_done_callback(PLEDGES.tasks.discard)
        return WELL


class HastySettling(Settling):
    """Informs the sender of recorded results."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock)
        self.pledged: dict[str, tuple[str, str]] = {}

    def put(self, result: Result) -> None:
        self.pledged[result.delivery.id] = (result.delivery.event_id, result.url)
        super().put(result)

    async def write(self, first: Write | None = None) -> float | None:
        wait = await super().write(first)
        for delivery_id in self.pledged.keys() - self.held():
            written = PLEDGES.settled.pop(self.pledged.pop(delivery_id), None)
            if written is not None:
                written.set()
        return wait


if __name__ == "__main__":
    # The rule that is broken, and what it needs.
    sys.exit(main(parts=Parts(sender=HastySender, settling=HastySettling)))

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
from outbox import worker
from outbox.queue.state.deliveries import Result
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.send import Sender
from outbox.worker import run
from outbox.worker.settling import Settling

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

    async def _write(self, batch: list[Result], *rest: Any, **more: Any) -> float | None:
        wait = await super()._write(batch, *rest, **more)
        for settled in batch if wait is not None else ():
            event = PLEDGES.settled.pop((settled.delivery.event_id, settled.url), None)
            if event is not None:
                event.set()
        return wait


if __name__ == "__main__":
    run.Sender = HastySender  # type: ignore[attr-defined] # the rule that is broken
    worker.Settling = HastySettling  # type: ignore[attr-defined] # and what it needs
    sys.exit(main())

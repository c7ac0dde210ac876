"""Decide whether failures of many days are evidence enough to disable a webhook.

Days alone are not: two requests a week apart may both fail by chance, and one event that a receiver
can never accept fails as long as it is retried. So a webhook keeps the first events that failed
since its last success; a failed attempt adds its event until there are as many as are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from outbox.queue.state.policy import Decision
from outbox.sending.outcome import Outcome

OF_THE_RECEIVER = frozenset({401, 403, 404, 410})
"""Responses 4xx that are about the webhook, not about one event."""
MOST_EVENTS = 100
"""The most events that an installation may ask for."""
_NOT_ONE_EVENT = "+"
"""Stands before the events once an attempt has failed that every event may fail by."""


class Event(Protocol):
    """The event of a delivery."""

    @property
    def id(self) -> str: ...


class Delivery(Protocol):
    """What an attempt delivered."""

    @property
    def event(self) -> Event: ...


class Result(Protocol):
    """An attempt, and its decision."""

    @property
    def delivery(self) -> Delivery: ...
    @property
    def decision(self) -> Decision: ...
    @property
    def outcome(self) -> Outcome | None: ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many attempts of how many events must have failed since the last success."""

    attempts: int = 10
    events: int = 3

    def after(self, kept: str | None, results: Iterable[Result]) -> str | None:
        """Return what a webhook keeps after these judged results; `kept` is what it had."""
        text = kept or ""
        several, events = text.startswith(_NOT_ONE_EVENT), text.removeprefix(_NOT_ONE_EVENT).split()
        for result in results:
            if not result.decision.counts_as_failure:
                several, events = False, []
                continue
            several = several or not _is_of_one_event(result.outcome)
            # Two tell that the fault is not of one event.
            if result.delivery.event.id not in events and len(events) < max(self.events, 2):
                events.append(result.delivery.event.id)
        return _NOT_ONE_EVENT * several + " ".join(events) or None

    def suffices(self, failures: int, kept: str | None) -> bool:
        """Return whether so many failed attempts in a row, of the events in `kept`, are enough."""
        events = (kept or "").removeprefix(_NOT_ONE_EVENT).split()
        of_one = len(events) < 2 and not (kept or "").startswith(_NOT_ONE_EVENT)
        return failures >= self.attempts and len(events) >= self.events and not of_one


USUAL = Evidence()


def _is_of_one_event(outcome: Outcome | None) -> bool:
    """Return whether an attempt may have failed by its event alone, which was refused."""
    return (
        outcome is not None
        and outcome.outcome == "http_4xx"
        and outcome.status not in OF_THE_RECEIVER
    )

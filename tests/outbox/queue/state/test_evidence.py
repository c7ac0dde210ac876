"""What disables a webhook after days of failures: attempts, events, and what each failed by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.evidence import Evidence
from outbox.queue.state.policy import Schedule, decide
from outbox.sending.outcome import judge, unanswered
from tests.support.drain import claimed

NEEDED = Evidence()


def result(event: str, status: int | None) -> Result:
    """Return an attempt of an event with this answer; None for a timeout."""
    outcome = unanswered("timeout", "late", 1.0)
    if status is not None:
        outcome = replace(outcome, outcome=judge(status), status=status, error=None)
    decision = decide(outcome, tries=0, schedule=Schedule(), dice=0.5, now_wall_s=0.0)
    delivery = claimed("w", delivery_id=f"d-{event}", event_id=event)
    return Result(delivery, decision, outcome, 1, [], "http://x/", "node")


@pytest.mark.parametrize(
    ("needed", "attempts", "enough"),
    [
        # Two failed requests, however far apart.
        (NEEDED, [("a", 500), ("b", 500)], False),
        (NEEDED, [("a", None)] * 6, False),
        # Many attempts, but of fewer events than are needed.
        (NEEDED, [("a", 500)] * 40, False),
        (NEEDED, [("a", 500), ("b", None)] * 40, False),
        (NEEDED, [("a", 500), ("b", 500), ("c", 500)] * 3, False),
        (NEEDED, [("a", 500), ("b", 500), ("c", 500)] * 3 + [("a", 500)], True),
        (NEEDED, [(f"e{n}", None) for n in range(10)], True),
        # One poisoned event, whatever an installation asks for.
        *((Evidence(2, 1), [("a", status)] * 9, False) for status in (400, 409, 413, 422, 451)),
        *((Evidence(2, 1), [("a", status)] * 9, True) for status in (401, 403, 404, 500, 503)),
        (Evidence(2, 1), [("a", None)] * 9, True),
        (Evidence(2, 1), [("a", 422), ("b", 422)], True),
        (Evidence(2, 1), [("a", 422)] * 9 + [("a", 500)], True),
        (NEEDED, [("a", 422), ("b", 400), ("c", 422)] * 4, True),
        # A success ends what was before it.
        (NEEDED, [(f"e{n}", 500) for n in range(10)] + [("x", 200)], False),
        (NEEDED, [(f"e{n}", 500) for n in range(9)] + [("x", 200), ("a", 500)], False),
        (Evidence(2, 1), [("a", 500), ("a", 200), ("b", 422), ("b", 422)], False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_evidence(
    needed: Evidence, attempts: list[tuple[str, int | None]], enough: bool, at_once: int
) -> None:
    kept, failures = None, 0
    for start in range(0, len(attempts), at_once):
        batch = [result(*one) for one in attempts[start : start + at_once]]
        kept = needed.after(kept, batch)
        for one in batch:
            failures = failures + 1 if one.decision.counts_as_failure else 0
    assert needed.suffices(failures, kept) is enough
    assert kept is None or len(kept.split()) <= max(needed.events, 2)

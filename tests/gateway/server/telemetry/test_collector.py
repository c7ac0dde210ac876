"""The queue of spans: its bound, its retries and its end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

import pytest
import structlog

from gateway.server.telemetry.collector import BATCH, TRIES, SpanQueue
from gateway.server.telemetry.spans import Span

SPAN = Span("work", "internal", "1" * 32, "2" * 16, None, False, 1, 2, {})


class Gate:
    """An exporter that gives the answers of a list, then takes everything; `open` lets it run."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.batches: list[int] = []
        self.open = threading.Event()
        self.asked = threading.Semaphore(0)
        self.closed = False

    def export(self, spans: Sequence[Span]) -> str | None:
        self.asked.release()
        self.open.wait(120)
        self.batches.append(len(spans))
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def queue_for(gate: Gate, most: int = 1_000) -> tuple[SpanQueue, Counter[str]]:
    counts: Counter[str] = Counter()
    return SpanQueue(gate, lambda result, n: counts.update({result: n}), most, 0.001), counts


def test_a_full_queue_drops_and_counts_spans_and_never_blocks() -> None:
    gate = Gate()
    queue, counts = queue_for(gate, most=10)
    for _ in range(25):
        queue.put(SPAN)
    assert counts == {"dropped": 15}
    queue.start()
    gate.open.set()
    queue.close(120)
    assert counts == {"dropped": 15, "exported": 10}
    assert gate.closed


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["refused", RuntimeError("broken")])
def test_a_failed_batch_is_tried_again(answer: str | Exception) -> None:
    gate = Gate(*[answer] * (TRIES - 1))
    gate.open.set()
    queue, counts = queue_for(gate)
    queue.put(SPAN)
    queue.start()
    for _ in range(TRIES):
        assert gate.asked.acquire(timeout=120)
    queue.close(120)
    assert gate.batches == [1] * TRIES
    assert (counts["dropped"], counts["exported"]) == (0, 1)


def test_a_batch_that_fails_again_and_again_makes_room() -> None:
    gate = Gate(*["refused"] * TRIES)
    gate.open.set()
    queue, counts = queue_for(gate)
    for _ in range(BATCH + 1):
        queue.put(SPAN)
    queue.start()
    for _ in range(TRIES + 1):
        assert gate.asked.acquire(timeout=120)
    queue.close(120)
    assert gate.batches == [BATCH] * TRIES + [1]
    assert (counts["dropped"], counts["exported"]) == (BATCH, 1)


@pytest.mark.slow
def test_a_dropped_batch_is_not_taken_for_a_collector_that_is_back() -> None:
    gate = Gate(*["refused"] * TRIES)
    gate.open.set()
    queue, counts = queue_for(gate)
    queue.put(SPAN)
    with structlog.testing.capture_logs() as lines:
        queue.start()
        for _ in range(TRIES):
            assert gate.asked.acquire(timeout=120)
        queue.close(120)
    assert [line["event"] for line in lines] == ["traces_not_exported"]
    assert counts == {"dropped": 1}

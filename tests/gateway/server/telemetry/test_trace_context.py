"""Trace context as clients send it, good and bad."""

import pytest

from gateway.server.telemetry.trace_context import Marks
from outbox.clock import SystemClock
from outbox.ids import Ids

MARKS = Marks(SystemClock(), Ids())
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    "header",
    [
        "", "00", PARENT[:-1], PARENT + "-extra", PARENT.upper(), "ff" + PARENT[2:], PARENT + " ",
        "00-" + "0" * 32 + "-00f067aa0ba902b7-01", PARENT.replace("00f067aa0ba902b7", "0" * 16),
    ],
)  # fmt: skip
def test_a_malformed_traceparent_begins_a_new_trace(header: str) -> None:
    assert MARKS.begin(header).trace_id != PARENT.split("-")[1]


def test_a_later_version_is_read_as_this_one_and_marks_are_random() -> None:
    trace = MARKS.begin("01" + PARENT[2:] + "-more")
    assert trace.trace_id == PARENT.split("-")[1]
    assert trace.traceparent.startswith("00-")
    assert MARKS.begin(PARENT[:-2] + "00").flags == "00"
    made = [MARKS.begin(None) for _ in range(500)]
    assert len({one.trace_id for one in made}) == len({one.span_id for one in made}) == 500
    assert {(len(one.trace_id), len(one.span_id)) for one in made} == {(32, 16)}
    assert {len(one) for one in {MARKS.request_id() for _ in range(500)}} == {24}

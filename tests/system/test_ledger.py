"""The ledger detects each broken promise, and the judgement of nodes what came twice or late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.fleet import Spell
from tests.support.ledger import Held, Rows, Verdict, judge
from tests.support.load import Load, Refused
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants
from tests.system.test_nodes import overlaps, same_attempt_twice, worst_lags

HELD: Held = {("e1", "w1"): "claim"}


class Case:
    """Two correct writes of one owner with two webhooks; a test breaks one thing."""

    def __init__(self) -> None:
        self.tenants = Tenants(
            Path(), {"o": "key"}, {"o": ["w1", "w2"]}, {"/owner/1": "w1", "/owner/2": "w2"}
        )
        self.load = Load(self.tenants, 1)
        self.load.acked = {"r1": "c1", "r2": "c2"}
        self.rows = Rows(
            contacts=[("c1", "o", "r1"), ("c2", "o", "r2")],
            events=[("e1", "o", "c1", "r1"), ("e2", "o", "c2", "r2")],
            deliveries=[(e, w, "delivered") for e in ("e1", "e2") for w in ("w1", "w2")],
        )
        self.got = [
            Receipt(1, f"/owner/{n}", event, 1, event, 1.0, 2.0)
            for event in ("e1", "e2")
            for n in (1, 2)
        ]

    def judged(self, *in_flight: Held) -> Verdict:
        return judge("none", self.load, self.rows, self.got, in_flight=in_flight)


def repeat(case: Case) -> None:
    case.got.append(replace(case.got[0], attempt=2))


def twice(case: Case) -> None:
    case.rows.contacts.append(("c3", "o", "r1"))
    case.rows.events.append(("e3", "o", "c3", "r1"))


def refuse(case: Case) -> None:
    del case.load.acked["r2"]
    case.load.refused["r2"] = Refused(503, "unavailable", "1", 0.1)


LOSSES: dict[str, Callable[[Case], object]] = {
    "an acknowledged record is gone": lambda case: case.rows.contacts.pop(),
    "an acknowledged event is gone": lambda case: case.rows.events.pop(),
    "a delivery was never made": lambda case: case.rows.deliveries.pop(),
    "a delivery ended otherwise": lambda case: case.rows.deliveries.__setitem__(
        0, ("e1", "w1", "dead")
    ),
    "nothing arrived": lambda case: case.got.pop(),
    "it arrived and was not answered": lambda case: setattr(case.got[0], "answered", None),
}
INTRUDERS: dict[str, Callable[[Case], object]] = {
    "a write that nobody made": lambda case: case.load.acked.pop("r2"),
    "a refused write took place": refuse,
    "a record twice": twice,
    "a record without an event": lambda case: case.rows.contacts.append(("c3", "o", "r3")),
    "a delivery twice": lambda case: case.rows.deliveries.append(("e1", "w1", "delivered")),
    "an arrival without an event": lambda case: setattr(case.got[0], "event_id", "e9"),
    "an arrival repeated without a kill": repeat,
    "other bytes": lambda case: setattr(case.got[0], "digest", "other"),
}


def test_all_well() -> None:
    verdict = Case().judged()
    assert verdict.kept
    assert (verdict.acks, verdict.rows, verdict.deliveries) == (2, 2, 4)


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_is_seen(what: str) -> None:
    case = Case()
    LOSSES[what](case)
    assert case.judged().lost
    assert not case.judged().kept


@pytest.mark.parametrize("what", INTRUDERS)
def test_what_should_not_be_is_seen(what: str) -> None:
    case = Case()
    INTRUDERS[what](case)
    assert case.judged().unexpected
    assert not case.judged().kept


def test_a_kill_excuses_one_repetition_of_what_it_met() -> None:
    case = Case()
    repeat(case)
    assert case.judged(HELD).kept
    assert case.judged(HELD).duplicated == 1
    repeat(case)
    assert not case.judged(HELD).kept
    assert case.judged(HELD, HELD).kept


def test_a_write_that_broke_off_may_be_there() -> None:
    case = Case()
    case.load.broken["r2"] = "ServerDisconnectedError"
    del case.load.acked["r2"]
    assert case.judged().kept
    assert case.judged().recovered == 1


def came(attempt: int, at: float, answered: float | None) -> Receipt:
    return Receipt(1, "/owner/1", "e1", attempt, "e1", at, answered)


def test_what_two_nodes_did_is_seen() -> None:
    tenants, pair = Case().tenants, ("e1", "w1")
    same = [came(1, 1.0, 2.0), came(1, 3.0, 4.0)]
    assert same_attempt_twice(same, set(), tenants) == 1
    assert same_attempt_twice(same, {pair}, tenants) == 0
    for requests, count in (
        ([came(1, 1.0, 3.0), came(2, 2.0, 4.0)], 1), ([came(1, 1.0, None), came(2, 9.0, 9.5)], 1),
        ([came(1, 1.0, 2.0), came(2, 2.5, 4.0)], 0),
    ):  # fmt: skip
        assert overlaps(requests, set(), tenants) == count
        assert overlaps(requests, {pair}, tenants) == 0


def test_lag_runs_from_the_answer_to_the_first_arrival() -> None:
    tenants, rows = Case().tenants, Rows([], [("e1", "o", "c1", "r1")], [])
    got = [came(1, 9.0, None), came(2, 12.0, 12.1)]
    for spells, lags in (
        ([], (7.0, 0.0)), ([Spell(1.0, 8.0, frozenset(["w1"]))], (0.0, 7.0)),
        ([Spell(1.0, 8.0, frozenset(["w2"]))], (7.0, 0.0)),
    ):  # fmt: skip
        assert worst_lags(rows, {"r1": 2.0}, got, spells, tenants) == lags

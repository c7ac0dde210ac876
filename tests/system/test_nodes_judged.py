"""The judgement of several nodes detects each delivery made twice or late."""

from __future__ import annotations

from pathlib import Path

from tests.support.fleet import Spell
from tests.support.ledger import Rows
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants
from tests.system.nodes_judged import overlaps, same_attempt_twice, worst_lags

TENANTS = Tenants(Path(), {"o": "key"}, {"o": ["w1"]}, {"/hook": "w1"})
PAIR = ("e1", "w1")


def came(attempt: int, at: float, answered: float | None) -> Receipt:
    return Receipt(1, "/hook", "e1", attempt, "digest", at, answered)


def test_an_attempt_that_two_nodes_made_is_a_double_claim() -> None:
    assert same_attempt_twice([came(1, 1.0, 2.0), came(1, 3.0, 4.0)], set(), TENANTS) == 1
    assert same_attempt_twice([came(1, 1.0, 2.0), came(2, 3.0, 4.0)], set(), TENANTS) == 0


def test_a_piece_of_history_that_is_gone_may_have_had_the_attempt() -> None:
    assert same_attempt_twice([came(1, 1.0, 2.0), came(1, 3.0, 4.0)], {PAIR}, TENANTS) == 0


def test_requests_of_one_delivery_at_the_same_time_are_seen() -> None:
    assert overlaps([came(1, 1.0, 3.0), came(2, 2.0, 4.0)], set(), TENANTS) == 1
    assert overlaps([came(1, 1.0, None), came(2, 9.0, 9.5)], set(), TENANTS) == 1
    assert overlaps([came(1, 1.0, 2.0), came(2, 2.5, 4.0)], set(), TENANTS) == 0
    assert overlaps([came(1, 1.0, None), came(2, 9.0, 9.5)], {PAIR}, TENANTS) == 0


def test_lag_runs_from_the_answer_to_the_first_arrival() -> None:
    rows = Rows([], [("e1", "o", "c1", "r1")], [])
    got = [came(1, 9.0, None), came(2, 12.0, 12.1)]
    assert worst_lags(rows, {"r1": 2.0}, got, [], TENANTS) == (7.0, 0.0)
    held = Spell(1.0, 8.0, frozenset(["w1"]))
    assert worst_lags(rows, {"r1": 2.0}, got, [held], TENANTS) == (0.0, 7.0)
    elsewhere = Spell(1.0, 8.0, frozenset(["w2"]))
    assert worst_lags(rows, {"r1": 2.0}, got, [elsewhere], TENANTS) == (7.0, 0.0)

"""The whole engine in virtual time, with owners who steer: order, deliveries, jobs (R28)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from outbox.queue.drain import settle
from outbox.queue.state import circuits, head_deliveries, lanes
from tests.outbox.worker.test_simulation import SEED, Machine, run
from tests.support.simulated.steered import Steered
from tests.support.simulated.world import NAMES, Broken

pytestmark = pytest.mark.slow
EXAMPLES = int(os.environ.get("STEERED_EXAMPLES", "60"))
CONTROLS = 300


class Steering(Machine):
    """A machine whose owners use the whole console."""

    kind = Steered
    world: Steered

    @rule(names=st.sampled_from((NAMES, NAMES[:1])))
    def add_ordered(self, names: tuple[str, ...]) -> None:
        self.world.add_webhook(names, ordered=True)

    @rule(place=st.integers(0, 9), ordered=st.booleans())
    def turn(self, place: int, ordered: bool) -> None:
        self.world.turn(self._hook(place), ordered)

    @rule(place=st.integers(0, 50), how=st.sampled_from(("try", "cancel", "skip")))
    def steer(self, place: int, how: str) -> None:
        self.world.steer(place, how)

    @rule(place=st.integers(0, 9))
    def recover(self, place: int) -> None:
        self.world.recover(self._hook(place))

    @rule()
    def work_off(self) -> None:
        self.world.work_off()


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worlds are short, so receivers fail at once, and circuits open early."""
    monkeypatch.setattr(circuits, "FAILURES", 2)
    monkeypatch.setattr(Machine, "failing", True)
    monkeypatch.setattr(Machine, "first_is_ordered", True)


def test_owners_may_steer_whatever_happens() -> None:
    run(EXAMPLES, SEED, machine=Steering)


async def _nothing(*args: Any) -> Sequence[Any]:
    return []


@pytest.mark.parametrize(
    ("place", "name", "broken", "words"),
    [
        (settle, "follow", _nothing, "without a head"),
        (
            head_deliveries,
            "PROMOTE",
            head_deliveries.PROMOTE.replace("h.seq", "h.seq desc"),
            "after a later event",
        ),
        (settle, "SETTLE", settle.SETTLE.replace(lanes.CHAIN, "'0 ' as chain"), "are broken"),
    ],
    ids=["no follower after a head", "the last follower first", "chains that begin again"],
)
def test_a_broken_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, broken: object, words: str
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises(Broken, match=words):
        run(CONTROLS, SEED, shrinking=False, machine=Steering)

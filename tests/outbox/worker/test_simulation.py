"""The whole engine in virtual time (R28): a state machine of clients, owners, faults and kills."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
import structlog
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.ids import Ids
from outbox.queue.drain import settle
from outbox.queue.state import circuits, head_deliveries, lanes
from outbox.queue.upkeep.parking import CHOICES
from outbox.worker import live_nodes
from outbox.worker.sends import Sends
from outbox.worker.settling import Settling, Write
from tests.support.databases import SOURCES
from tests.support.simulated.network import MODES
from tests.support.simulated.world import NAMES, Broken, World

pytestmark = pytest.mark.slow

STEPS = 14
SEED = int(os.environ.get("SIMULATION_SEED", "1"))
EXAMPLES = 50
MET = 10
CONTROLS = 600
"""Worlds within which a broken rule must be found; all need far fewer."""


class Machine(RuleBasedStateMachine):
    """Chooses what happens in one world."""

    template: ClassVar[Path]
    counts: ClassVar[dict[str, int]] = {}
    failing: ClassVar[bool] = False
    """Whether receivers may fail from the start, with deliveries waiting for them."""
    first_is_ordered: ClassVar[bool] = False
    store_fails: ClassVar[float] = 0.0
    """The share of the store's calls that fail from the start, with deliveries on their way."""
    world: World

    @initialize(chosen=st.integers(0, 2**32 - 1), hooks=st.integers(1, 3))
    def begin(self, chosen: int, hooks: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="carteiro-world-", dir=self.template.parent))
        self.world = World(self.folder, self.template, chosen)
        for number in range(hooks):
            self.world.add_webhook(
                NAMES[: 1 + number % 2], ordered=self.first_is_ordered and not number
            )
            if self.failing:
                self.world.receiver(self.world.hooks[-1], self.world.dice.choice(MODES))
        if self.failing:
            self.world.write(NAMES[0], 4)
        if self.store_fails:
            self.world.fail_store(self.store_fails)
            self.world.write(NAMES[0], 4)

    @invariant()
    def holds(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.world.heal()
            self.world.check_complete()
            for name, count in (
                ("examples", 1), ("writes", len(self.world.writes)),
                ("requests", len(self.world.network.started)),
                ("kills_in_flight", self.world.kills.total()), ("probes", self.world.probes()),
            ):  # fmt: skip
                self.counts[name] = self.counts.get(name, 0) + count
        finally:
            self.world.close()
            shutil.rmtree(self.folder)


HOOK, PLACE, ORDERED = st.integers(0, 9), st.integers(0, 50), st.booleans()
STEPS_OF: dict[str, dict[str, Any]] = {
    "write": {"name": st.sampled_from(NAMES), "count": st.integers(1, 6)},
    "advance": {"seconds": st.sampled_from((0.01, 0.1, 0.5, 2.0, 10.0))},
    "receiver": {"hook": HOOK, "mode": st.sampled_from(MODES)},
    "fail_store": {"share": st.sampled_from((0.0, 0.1, 0.5))},
    "kill": {},
    "pause": {"hook": HOOK},
    "activate": {"hook": HOOK, "parked": st.sampled_from(CHOICES)},
    "remove": {"hook": HOOK},
    "replay": {"place": PLACE},
    "add_webhook": {"names": st.sampled_from((NAMES, NAMES[:1])), "ordered": ORDERED},
    "jump": {"seconds": st.sampled_from((-7200, -30, 30, 7200, 2_592_000))},
    "turn": {"hook": HOOK, "ordered": ORDERED},
    "steer": {"place": PLACE, "how": st.sampled_from(("try", "cancel", "skip"))},
    "recover": {"hook": HOOK},
    "work_off": {},
}
"""What may happen in a world: a method of it, and what its arguments may be."""


def step(name: str) -> Callable[..., None]:
    """Return a rule that takes one step of the world."""

    def taken(self: Machine, **given: Any) -> None:
        if "hook" in given:
            given["hook"] = self.world.hooks[given["hook"] % len(self.world.hooks)]
        getattr(self.world, name)(**given)

    taken.__name__ = name
    return taken


_rule: Any = rule
for _name, _given in STEPS_OF.items():
    setattr(Machine, _name, _rule(**_given)(step(_name)))


@pytest.fixture(scope="module", autouse=True)
def template() -> Iterator[Path]:
    """A migrated file, and no log."""
    shm = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="carteiro-simulated-", dir=shm if shm.is_dir() else None))
    Machine.template = home / "template.db"

    async def make() -> None:
        db = await database.open(f"sqlite:///{Machine.template}", clock=SystemClock(), ids=Ids())
        await migrate(db, SOURCES[:1])
        await db.close()

    asyncio.run(make())
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield Machine.template
    structlog.configure(**before)
    shutil.rmtree(home)


def run(examples: int, chosen: int, *, shrinking: bool = True) -> dict[str, Any]:
    """Run `examples` worlds; print their figures as one line. Raise Broken."""
    Machine.counts = {}
    phases = tuple(Phase) if shrinking else (Phase.generate,)
    run_state_machine_as_test(
        seed(chosen)(Machine),
        settings=settings(
            max_examples=examples, stateful_step_count=STEPS, deadline=None, database=None,
            print_blob=True, report_multiple_bugs=False, phases=phases,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip
    record = {"fault": "R28 simulation", "seed": chosen, **Machine.counts, "lost": 0}
    print(json.dumps(record), flush=True)
    return record


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worlds are short, so receivers fail at once, and circuits open early."""
    monkeypatch.setattr(circuits, "FAILURES", 2)
    monkeypatch.setattr(Machine, "failing", True)
    monkeypatch.setattr(Machine, "first_is_ordered", True)


@pytest.mark.usefixtures("early")
def test_owners_may_steer_and_receivers_may_fail() -> None:
    counts = run(EXAMPLES, SEED)
    assert counts["probes"] >= MET, "too few circuits opened"
    assert counts["kills_in_flight"] >= MET, "too few kills met a delivery in flight"


@pytest.mark.proof
def test_what_is_written_is_delivered_whatever_happens() -> None:
    run(int(os.environ.get("SIMULATION_EXAMPLES", "2000")), SEED)


def walk(template: Path, folder: Path, chosen: int) -> str:
    """Take fifty steps that a seed chooses; return the digest of the world."""
    dice = Random(chosen)
    world = World(folder, template, chosen)
    try:
        world.add_webhook(NAMES)
        world.add_webhook(NAMES[:1])
        for _ in range(50):
            hook = dice.choice(world.hooks)
            steps: list[Callable[[], None]] = [
                lambda: world.write(dice.choice(NAMES), 3),
                lambda: world.advance(dice.random()),
                partial(world.receiver, hook, dice.choice(MODES)),
                partial(world.pause, hook),
                partial(world.activate, hook, dice.choice(CHOICES)),
                lambda: world.fail_store(dice.choice((0.0, 0.3))),
                partial(world.replay, 3),
                world.kill,
            ]
            dice.choice(steps)()
        world.heal()
        world.check_complete()
        return world.digest()
    finally:
        world.close()


@pytest.mark.parametrize("chosen", [1, pytest.param(2, marks=pytest.mark.proof)])
def test_a_seed_decides_every_byte(template: Path, tmp_path: Path, chosen: int) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (walk(template, folder, chosen) for folder in folders)
    assert first == second


async def _nothing(*args: Any, **kwargs: Any) -> list[Any]:
    return []


class Forgetful(Settling):
    """Drops results whose write fails."""

    async def write(self, first: Write | None = None) -> float | None:
        wait = await super().write(first)
        self._batch = []
        return wait


@pytest.mark.proof
@pytest.mark.parametrize(
    ("place", "name", "broken", "words"),
    [
        (live_nodes, "rescue", _nothing, "unfinished"),
        (World, "settling", Forgetful, "again without a kill|unfinished"),
        (Sends, "changed", lambda *args: None, "after it was stopped"),
    ],
    ids=["without rescue", "without a second try of results", "without withdrawal"],
)
def test_a_broken_rule_is_found(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, broken: object, words: str
) -> None:
    monkeypatch.setattr(place, name, broken)
    # Only results whose write fails can be forgotten.
    monkeypatch.setattr(Machine, "store_fails", 0.5 if broken is Forgetful else 0.0)
    with pytest.raises(Broken, match=words):
        run(CONTROLS, SEED, shrinking=False)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("place", "name", "broken", "words"),
    [
        (settle, "promote", _nothing, "without a head"),
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
@pytest.mark.usefixtures("early")
def test_a_broken_rule_of_steering_is_found(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str, broken: object, words: str
) -> None:
    monkeypatch.setattr(place, name, broken)
    with pytest.raises(Broken, match=words):
        run(CONTROLS, SEED, shrinking=False)

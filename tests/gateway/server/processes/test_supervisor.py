"""The supervisor with small processes: faults that a real server has seldom."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import structlog

from gateway.server.config import Config, Server
from gateway.server.processes import supervisor as module
from gateway.server.processes.child import Child
from gateway.server.processes.shared_counters import shared_memory
from gateway.server.processes.supervisor import Supervisor
from outbox.clock import SystemClock
from outbox.errors import CannotStart
from tests.gateway.server.processes.member_process import BEHAVIOUR
from tests.support.waiting import until

MEMBER = "tests.gateway.server.processes.member_process"
Ask = Callable[[str], Awaitable[bytes]]

pytestmark = pytest.mark.slow
PROOF = pytest.mark.proof
"""Each test starts two or three processes; a fault of one and a takeover are shown daily."""


class Running:
    """A supervisor and what its processes have done."""

    def __init__(self, folder: Path, processes: int) -> None:
        self.folder = folder
        self.stopping = asyncio.Event()
        self.memory = shared_memory()
        config = Config(server=Server(processes=processes, shutdown_seconds=1.0))
        self.supervisor = Supervisor(config, "all", self.memory, SystemClock(), self.stopping)
        self.task = asyncio.create_task(self.supervisor.run())

    def behave(self, behaviour: str) -> None:
        (self.folder / "behaviour").write_text(behaviour)

    @property
    def starts(self) -> list[float]:
        file = self.folder / "starts"
        return [float(line) for line in file.read_text().split()] if file.exists() else []

    @property
    def pids(self) -> list[int]:
        """The processes that listen, by place."""
        children = self.supervisor._children
        return [children[place].pid for place in sorted(children) if children[place].ready]

    @property
    def workers(self) -> list[int]:
        return [child.pid for child in self.supervisor._children.values() if child.works]

    @property
    def calls(self) -> list[str]:
        """What the processes were told, in turn."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    async def until(self, holds: Callable[[], bool]) -> None:
        await until(lambda: self.task.done() or holds())
        assert not self.task.done(), self.task


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "orig_argv", [sys.executable, "-m", MEMBER])
    monkeypatch.setenv(BEHAVIOUR, str(tmp_path / "behaviour"))
    (tmp_path / "behaviour").write_text("well")
    return tmp_path


@asynccontextmanager
async def running(folder: Path, processes: int = 2) -> AsyncIterator[Running]:
    there = Running(folder, processes)
    try:
        yield there
    finally:
        there.stopping.set()
        await asyncio.gather(there.task, return_exceptions=True)
        os.close(there.memory)


@PROOF
async def test_it_waits_longer_before_each_restart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.5)
    monkeypatch.setattr(module, "LONGEST_WAIT", 1.0)
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        there.behave("die")
        os.kill(there.pids[1], signal.SIGKILL)
        await there.until(lambda: len(there.starts) == 6)
        waits = [later - earlier for earlier, later in pairwise(there.starts[2:])]
        # The first restart waited half a second, before the first of these.
        assert all(wait >= 1.0 for wait in waits), waits


@PROOF
async def test_a_process_that_the_system_refuses_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An address space of nothing, a limit of processes and a missing program are one error.
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        program = sys.executable
        refused = there.folder / "none"
        monkeypatch.setattr(sys, "executable", str(refused))
        with structlog.testing.capture_logs() as lines:
            os.kill(there.pids[1], signal.SIGKILL)
            await there.until(lambda: "process_not_started" in {line["event"] for line in lines})
        assert len(there.pids) == 1
        monkeypatch.setattr(sys, "executable", program)
        await there.until(lambda: len(there.pids) == 2)


@PROOF
async def test_a_frozen_process_is_killed_and_another_works(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.1)
    # Long enough that on a busy machine the other one is not taken for frozen too.
    monkeypatch.setattr(module, "FROZEN_SECONDS", 3.0)
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        frozen, other = there.pids
        assert there.workers == [frozen]
        os.kill(frozen, signal.SIGSTOP)
        await there.until(lambda: there.workers == [other])
        await there.until(lambda: len(there.pids) == 2)
        assert frozen not in there.pids


@PROOF
async def test_a_process_that_does_not_stop_is_killed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LATE_SECONDS", 0.1)
    (folder / "behaviour").write_text("stay")
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        there.stopping.set()
        await there.task
    assert not there.supervisor._children


async def test_a_first_start_that_fails_ends_all_with_its_reason(folder: Path) -> None:
    (folder / "behaviour").write_text("fail")
    async with running(folder) as there:
        with pytest.raises(CannotStart, match=r"^no database$"):
            await there.task
        assert len(there.starts) == 1


@PROOF
async def test_a_later_start_that_fails_does_not(folder: Path) -> None:
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        there.behave("fail")
        os.kill(there.pids[0], signal.SIGKILL)
        await there.until(lambda: len(there.starts) >= 4)
        assert not there.task.done()
        assert (await there.supervisor._faults(b"")).decode() == (
            '["1 of 2 processes do not run","tired"]'
        )
        there.behave("well")
        await there.until(lambda: len(there.pids) == 2)
        # What both say is told once.
        assert await there.supervisor._faults(b"") == b'["tired"]'


@PROOF
async def test_a_process_that_does_not_answer_is_a_fault(folder: Path) -> None:
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        os.kill(there.pids[1], signal.SIGSTOP)
        said = (await there.supervisor._faults(b"")).decode()
        assert "process 2 does not respond" in said
        os.kill(there.pids[1], signal.SIGCONT)


@PROOF
async def test_the_metrics_tell_how_many_processes_answer(folder: Path) -> None:
    async with running(folder, processes=3) as there:

        async def counted() -> list[str]:
            text = (await there.supervisor._metrics(b"")).decode()
            return [line.rpartition(" ")[2] for line in text.splitlines() if line[0] != "#"]

        await there.until(lambda: len(there.pids) == 3)
        assert await counted() == ["3.0", "0.0"]
        stopped, dead = there.pids[1:]
        # One that does not answer is missing, though its last figures still count.
        os.kill(stopped, signal.SIGSTOP)
        assert await counted() == ["2.0", "1.0"]
        there.behave("fail")
        os.kill(dead, signal.SIGKILL)
        await there.until(lambda: len(there.starts) >= 4)
        assert await counted() == ["1.0", "2.0"]
        os.kill(stopped, signal.SIGCONT)
        there.behave("well")
        await there.until(lambda: len(there.pids) == 3)
        assert await counted() == ["3.0", "0.0"]


@PROOF
async def test_the_counts_of_a_dropped_series_stay_while_another_process_has_it(
    folder: Path,
) -> None:
    name = "webhook_endpoint_attempts_total"
    async with running(folder) as there:

        async def counted(*of: int | None) -> dict[str, str]:
            """Return the counts of the node, whose processes count so many."""
            for place, count in enumerate(of):
                line = "" if count is None else f'{name}{{webhook="w1"}} {count}.0\n'
                (folder / f"metrics-{place}").write_text(
                    f"# HELP {name} A.\n# TYPE {name} counter\n{line}"
                )
            text = (await there.supervisor._metrics(b"")).decode()
            return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

        await there.until(lambda: len(there.pids) == 2)
        series = f'{name}{{webhook="w1"}}'
        assert await counted(5, 7) == {series: "12.0"}
        for _ in range(2):
            assert await counted(None, 7) == {series: "12.0"}
        assert await counted(1, 8) == {series: "14.0"}
        # What a dead process has counted stays, too.
        os.kill(there.pids[0], signal.SIGKILL)
        await there.until(lambda: len(there.starts) == 3 and len(there.pids) == 2)
        assert await counted(0, 8) == {series: "14.0"}
        assert await counted(None, None) == {}
        assert await counted(2, None) == {series: "2.0"}


@PROOF
async def test_a_silent_process_is_no_fault_while_another_serves(folder: Path) -> None:
    (folder / "behaviour").write_text("fit")
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        for number in (0, 1):
            os.kill(there.pids[number], signal.SIGSTOP)
            assert await there.supervisor._faults(b"") == b"[]"
            os.kill(there.pids[number], signal.SIGCONT)
        os.kill(there.pids[1], signal.SIGKILL)
        await there.until(lambda: len(there.pids) == 1)
        assert await there.supervisor._faults(b"") == b"[]"


@PROOF
async def test_a_fault_of_the_process_that_delivers_is_one_of_the_node(folder: Path) -> None:
    (folder / "behaviour").write_text("fit")
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        for child in there.supervisor._children.values():

            async def tired(name: str, child: Child = child, ask: Ask = child.ask) -> bytes:
                return b'["tired"]' if child.works else await ask(name)

            child.ask = tired  # type: ignore[assignment,method-assign] # only its answer differs
        assert await there.supervisor._faults(b"") == b'["tired"]'


@PROOF
async def test_another_works_while_one_is_silent_and_then_one_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(module, "SILENT_SECONDS", 1.0)
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        frozen, other = there.pids
        await there.until(lambda: there.calls == [f"work {frozen}"])
        os.kill(frozen, signal.SIGSTOP)
        await there.until(lambda: there.calls[1:] == [f"work {other}"])
        # Nobody may take what it has claimed: it may go on with that at any moment.
        assert not any("take_over" in call for call in there.calls)
        os.kill(frozen, signal.SIGCONT)
        await there.until(lambda: there.calls[2:] == [f"rest {frozen}"])
        assert there.workers == [other]
        assert there.pids == [frozen, other]


@PROOF
async def test_one_alone_works_after_a_call_that_was_answered_too_late(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(module, "SILENT_SECONDS", 4.0)
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        dead, late = there.pids
        await there.until(lambda: there.calls == [f"work {dead}"])
        os.kill(late, signal.SIGSTOP)
        os.kill(dead, signal.SIGKILL)
        # The call to the stopped one ends before that one counts as silent.
        await there.until(lambda: len(there.pids) == 2 and dead not in there.pids)
        [other] = [pid for pid in there.pids if pid != late] or [0]
        await there.until(lambda: there.workers == [other])
        os.kill(late, signal.SIGCONT)
        await there.until(lambda: f"work {late}" in there.calls)
        await there.until(lambda: f"rest {late}" in there.calls)
        assert there.workers == [other]


async def test_the_next_process_takes_over_from_all_dead_ones(folder: Path) -> None:
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        dead = there.pids
        await there.until(lambda: len(there.calls) == 1)
        await there.until(lambda: all(c.node_id for c in there.supervisor._children.values()))
        for pid in dead:
            os.kill(pid, signal.SIGKILL)
        await there.until(lambda: len(there.calls) == 4)
        worker = there.calls[1]
        assert worker.startswith("work ")
        assert set(there.calls[2:]) == {f"take_over node-{pid}" for pid in dead}


@PROOF
async def test_a_supervisor_that_stood_still_itself_kills_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its timer ends together with its own freeze, before it reads the answer."""
    monkeypatch.setattr(module, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(module, "FROZEN_SECONDS", 0.0)
    async with running(folder) as there:
        await there.until(lambda: len(there.pids) == 2)
        before = there.pids
        # Only the watch asks this one, by a call whose time is over at once.
        await there.until(lambda: there.supervisor._children[1].node_id != "")
        assert there.pids == before

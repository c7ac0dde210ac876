"""The resources that processes have used so far, from the kernel (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")
GONE = (FileNotFoundError, ProcessLookupError)
"""Any process but the first may end between two looks."""


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of CPU so far: of our Python, of PostgreSQL, and of the whole machine."""

    python: float
    server: float
    machine: float

    def since(self, before: Used) -> Used:
        return Used(
            self.python - before.python, self.server - before.server, self.machine - before.machine
        )


def used(python: int, server: int | None) -> Used:
    """Return the usage by process ids; `server` is PostgreSQL's first process, if any.

    Both include the processes that they started.
    """
    return Used(_of_family(python), _of_family(server) if server else 0.0, machine())


def seconds(processes: Iterable[int]) -> float:
    """Return the CPU time of these processes and of their ended children."""
    return sum(sum(map(int, _fields(process)[11:15])) for process in processes) / TICK


def _of_family(first: int) -> float:
    found = 0.0
    # The last ones first: what a child of them used is its parent's when the child ends meanwhile.
    for process in reversed(_family(first)[1:]):
        with suppress(*GONE):
            found += seconds([process])
    return found + seconds([first])


def _family(first: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with suppress(*GONE):
                parent = int(_fields(int(entry.name))[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [first]
    for process in found:
        found += children.get(process, [])
    return found


def _fields(process: int) -> list[str]:
    """Return the fields after the name in its `stat`: the name itself may contain anything."""
    return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()


def machine() -> float:
    """Return the CPU time of all processes of the machine."""
    fields = [int(word) for word in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    # The fourth and fifth are idle and waiting for a disk.
    return (sum(fields) - fields[3] - fields[4]) / TICK

"""The resources that processes have used so far, from the kernel (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")


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
    """Return the usage by process ids; `server` is PostgreSQL's first process, if any."""
    return Used(seconds([python]), seconds(_family(server)) if server else 0.0, _machine())


def seconds(processes: Iterable[int]) -> float:
    """Return the CPU time of these processes and of their ended children."""
    return sum(sum(map(int, _fields(process)[11:15])) for process in processes) / TICK


def written_bytes(process: int) -> int:
    """Return the bytes it has written to the disk."""
    lines = (PROC / str(process) / "io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def _family(first: int) -> list[int]:
    found = [first]
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_fields(int(entry.name))[1])
            except FileNotFoundError:
                continue
            if parent == first:
                found.append(int(entry.name))
    return found


def _fields(process: int) -> list[str]:
    """Return the fields after the name in its `stat`: the name itself may contain anything."""
    return (PROC / str(process) / "stat").read_text().rpartition(")")[2].split()


def _machine() -> float:
    fields = [int(word) for word in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    # The fourth and fifth are idle and waiting for a disk.
    return (sum(fields) - fields[3] - fields[4]) / TICK

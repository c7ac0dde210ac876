"""Where and when something is measured: the machine, its disk, what processes use of it (Linux)."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

PROC = Path("/proc")
TICK = os.sysconf("SC_CLK_TCK")
QUIET = 0.1
"""The largest share of the cores that other work uses on a quiet machine."""
WATCH_SECONDS = 1.0
FLUSHES = 50


def conditions() -> dict[str, Any]:
    """Return them as they are before a measurement."""
    cores = os.cpu_count() or 1
    # The load average also counts what ran minutes ago, such as the benchmark before this one.
    before = _cpu_of_machine()
    time.sleep(WATCH_SECONDS)
    busy = (_cpu_of_machine() - before) / WATCH_SECONDS
    nice, folder = os.getpriority(os.PRIO_PROCESS, 0), Path(tempfile.gettempdir())
    model = re.search(r"^model name\s*: (.+)$", (PROC / "cpuinfo").read_text(), re.M)
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": model[1] if model else platform.machine(),
        "cores": cores,
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "file_system": _file_system(folder),
        "flush_ms": round(_flush_ms(folder), 2),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "quiet": busy <= QUIET * cores and nice == 0,
    }


def _cpu_of_machine() -> float:
    """Return the seconds of CPU that all its processes have used."""
    fields = [int(word) for word in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    # The fourth and fifth are idle and waiting for a disk.
    return (sum(fields) - fields[3] - fields[4]) / TICK


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds `folder`."""
    mounts = [line.split()[1:3] for line in (PROC / "mounts").read_text().splitlines()]
    above = {str(path) for path in (folder.resolve(), *folder.resolve().parents)}
    return max((len(place), kind) for place, kind in mounts if place in above)[1]


def _flush_ms(folder: Path) -> float:
    """Return the mean time of a write of 4 KiB to the disk."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        began = time.perf_counter()
        for _ in range(FLUSHES):
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
        return (time.perf_counter() - began) / FLUSHES * 1000


def used(first: int) -> float:
    """Return the seconds of CPU that a process and all that it started have used so far."""
    spent, children = {first: 0}, dict[int, list[int]]()
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            # Any process but the first may end between two looks.
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                # With what its ended children used.
                spent[int(entry.name)] = sum(map(int, fields[11:15]))
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    family = [first]
    for process in family:
        family += children.get(process, [])
    return sum(spent[process] for process in family) / TICK

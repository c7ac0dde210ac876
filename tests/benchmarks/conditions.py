"""The circumstances of a measurement: the machine, its disk, and whether it had other work."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import median
from tests.benchmarks.usage import machine

QUIET = 0.1
"""The largest share of the cores that other work uses on a quiet machine."""
WATCH_SECONDS = 1.0
FLUSHES = 50
PAGE = b"x" * 4096


def conditions() -> dict[str, Any]:
    """Return them as they are before a measurement."""
    cores = os.cpu_count() or 1
    busy, nice = _cores_in_use(), os.getpriority(os.PRIO_PROCESS, 0)
    folder = Path(tempfile.gettempdir())
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": _processor(),
        "cores": cores,
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "file_system": _file_system(folder),
        "flush_ms": round(_flush_ms(folder), 2),
        "system": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "busy": round(busy, 1),
        "nice": nice,
        "quiet": busy <= QUIET * cores and nice == 0,
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1].strip() if found else platform.machine()


def _cores_in_use() -> float:
    """Return how many cores all programs use now, while this one waits."""
    # The load average also counts what ran minutes ago, such as the benchmark before this one.
    before = machine()
    time.sleep(WATCH_SECONDS)
    return (machine() - before) / WATCH_SECONDS


def _file_system(folder: Path) -> str:
    """Return the type of the file system that holds `folder`."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = {str(path) for path in (folder.resolve(), *folder.resolve().parents)}
    return max((len(place), kind) for place, kind in mounts if place in above)[1]


def _flush_ms(folder: Path) -> float:
    """Return the median time of a write of 4 KiB to the disk."""
    took = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(FLUSHES):
            began = time.perf_counter()
            file.write(PAGE)
            os.fdatasync(file.fileno())
            took.append((time.perf_counter() - began) * 1000)
    return median(took)

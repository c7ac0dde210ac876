"""System calls of running processes that fail or take long: `strace` injects the fault. Needs root.

A fault ends with the block: strace detaches, and the processes go on.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.support.requirements import need
from tests.support.waiting import in_time

ATTACH_SECONDS = 30.0
LET_GO_SECONDS = 5.0


@dataclass
class Injection:
    """A fault that waits for its call."""

    trace: Path

    @property
    def hits(self) -> int:
        """The calls so far that met the fault."""
        text = self.trace.read_text(errors="replace")
        return text.count("(INJECTED)") + text.count("(DELAYED)")

    async def until_hit(self, seconds: float) -> bool:
        """Wait for the first such call; return whether there was one in time."""
        return await in_time(lambda: self.hits > 0, seconds)


@asynccontextmanager
async def injected(
    pids: Sequence[int], call: str, fault: str, folder: Path
) -> AsyncIterator[Injection]:
    """Let `call` meet `fault`, which is written as in strace(1), such as `error=EIO:when=3`."""
    for tool in ("linux", "root", "strace"):
        need(tool)
    trace = folder / "trace.txt"
    trace.write_text("")
    strace = await asyncio.create_subprocess_exec(
        need("strace"), "-f", *(word for pid in pids for word in ("-p", str(pid))),
        "-o", str(trace), "-e", f"trace={call}", "-e", f"inject={call}:{fault}",
        stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
    )  # fmt: skip
    try:
        assert strace.stderr is not None
        async with asyncio.timeout(ATTACH_SECONDS):
            # "Process N attached", once for each process and each of its threads.
            await strace.stderr.readline()
        yield Injection(trace)
    finally:
        await let_go(strace)


async def let_go(strace: Process) -> None:
    """End strace, by force when it misses the signal: that happens just before it waits."""
    for end in (strace.terminate, strace.kill):
        if strace.returncode is None:
            end()
        with suppress(TimeoutError):
            await asyncio.wait_for(strace.communicate(), LET_GO_SECONDS)
            return

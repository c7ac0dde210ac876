"""A process of several without a server: it answers its supervisor, and behaves as it is told.

Run as a module by a supervisor. `BEHAVIOUR` names a file with one word: `well`, `fit` (also ready),
`fail` (cannot start), `die` (ends once it listens) or `stay` (does not stop). Of the files beside
it, `starts` gets the time of each start that the supervisor allows, `calls` what it is told, and
`metrics-0` is the exposition of the first process, if it is there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from gateway.server.processes.channel import Handler
from gateway.server.processes.member import Member

BEHAVIOUR = "BEHAVIOUR"
EXPOSITION = b"""\
# HELP server_processes Processes.
# TYPE server_processes gauge
server_processes{state="answering"} 1.0
server_processes{state="missing"} 0.0
"""


async def run(told: Path) -> int:
    member = Member.inherited()
    assert member is not None
    start = await member.join()
    behaviour = told.read_text()
    _note(told.parent / "starts")
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, (lambda: None) if behaviour == "stay" else stopping.set)

    async def alive(_: bytes) -> bytes:
        return f"node-{os.getpid()}".encode()

    def note(call: str) -> Handler:
        async def noted(body: bytes) -> bytes:
            with (told.parent / "calls").open("a") as calls:
                calls.write(f"{call} {body.decode() or os.getpid()}\n")
            return b""

        return noted

    async def greet() -> None:
        print(f"ready at {start.config.server.port}", flush=True)

    async def faults(_: bytes) -> bytes:
        return b"[]" if told.read_text() == "fit" else b'["tired"]'

    async def metrics(_: bytes) -> bytes:
        own = told.parent / f"metrics-{start.place}"
        return own.read_bytes() if own.exists() else EXPOSITION

    member.handlers |= {
        "alive": alive, "work": note("work"), "rest": note("rest"),
        "take_over": note("take_over"), "readiness": faults, "metrics": metrics,
    }  # fmt: skip
    if behaviour == "fail":
        await member.tell("failed", b"no database")
        return 1
    if behaviour == "die":
        await member.tell("listening")
        return 3
    await member.serve(greet, stopping)
    return 0


def _note(file: Path) -> None:
    with file.open("a") as starts:
        starts.write(f"{time.monotonic()}\n")


if __name__ == "__main__":
    sys.exit(asyncio.run(run(Path(os.environ[BEHAVIOUR]))))

"""The product as a separate process: start it, kill it, freeze it, stop it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import aiohttp

from tests.architecture.tree import ROOT
from tests.support.process import free_port
from tests.support.waiting import HANG_SECONDS

READY = b"is ready; console at"
BROKEN = "tests.system.broken_serve"


class NotStarted(Exception):
    """The process ended or printed nothing in time; the text ends with its last output."""


class Product:
    """`python -m gateway serve` on the database at `url`, always on the same port.

    `broken` names a rule that is broken on purpose, of tests/system/broken_serve.py; `prefix` is a
    command to run it under, such as strace. `environment` is that of a command beside it.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        key_file: Path,
        *,
        broken: str = "",
        name: str = "node",
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"{name}.log"
        self.prefix = tuple(prefix)
        self._command = (sys.executable, "-m", BROKEN if broken else "gateway", "serve")
        self._folder = folder
        self._process: Process | None = None
        # The process gets only these settings, none of the caller's shell or folder.
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CARTEIRO_")
        } | {
            "PYTHONPATH": str(ROOT),
            "CARTEIRO_SERVER__HOST": "127.0.0.1",
            "CARTEIRO_SERVER__PORT": str(self.port),
            "CARTEIRO_DATABASE__URL": url,
            "CARTEIRO_SECRETS__KEY_FILE": str(key_file),
            "CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
            "CARTEIRO_RETRY__SCHEDULE": "1,1,1,1,1,1,1,1,1",
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
            "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
            "CARTEIRO_LIMITS__PAGES_PER_SECOND": "0",
            "CARTEIRO_LOGGING__LEVEL": "info",
            "BROKEN": broken,
        } | dict(environment or {})  # fmt: skip

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> float:
        """Start it and wait until it is ready; return the seconds."""
        began = time.monotonic()
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.prefix,
                *self._command,
                cwd=self._folder,
                env=self.environment,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(HANG_SECONDS):
                await self._until_ready(self._process)
        except TimeoutError:
            self.kill()
            raise NotStarted(f"not ready after {HANG_SECONDS} s: {self.last_words()}") from None
        return time.monotonic() - began

    async def _until_ready(self, process: Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            if READY in line:
                return
        await process.wait()
        raise NotStarted(f"exit {process.returncode}: {self.last_words()}")

    def kill(self) -> float:
        """Send SIGKILL to the whole group; return the monotonic time."""
        if self._process is not None and self._process.returncode is None:
            # It may have ended without the event loop knowing yet.
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        return time.monotonic()

    async def ended(self, seconds: float = HANG_SECONDS) -> int:
        """Wait for its end; return the exit status (negative: the signal that ended it)."""
        assert self._process is not None
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        os.kill(self.pid, number)

    async def stop(self, seconds: float = HANG_SECONDS) -> int:
        """Send SIGTERM and wait; return the exit status. Kill it if it does not end in time."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.terminate()
            try:
                return await self.ended(seconds)
            except TimeoutError:
                self.kill()
        return await self.ended()

    async def close(self) -> None:
        """End it in any state, at the end of a test."""
        if self._process is not None:
            self.kill()
            await self.ended()

    async def get(self, path: str, key: str = "", seconds: float = 30.0) -> tuple[int, str]:
        """Return status and text of a page, asked on a connection of its own; 0 for no answer."""
        headers, timeout = {"X-API-Key": key} if key else {}, aiohttp.ClientTimeout(seconds)
        try:
            async with aiohttp.ClientSession(
                self.address, headers=headers, timeout=timeout
            ) as http:
                async with http.get(path) as answer:
                    return answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return 0, ""

    def cpu_seconds(self) -> float:
        """Return the processor seconds of the process and all its threads so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> float:
        """Return its resident memory in MiB; 0 when it has ended."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0.0
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS")] or ["VmRSS: 0"]
        return round(int(line.split()[1]) / 1024, 1)

    def queued_seconds(self) -> float:
        """Return how long its event loop has waited for a processor."""
        return queued_seconds(self.pid)

    def last_words(self) -> str:
        """Return the last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


def queued_seconds(pid: int) -> float:
    """Return how long the first thread of a process has waited for a processor so far."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9

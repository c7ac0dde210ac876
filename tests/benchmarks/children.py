"""Processes of a benchmark: each prints one JSON line when it is ready, and ends with its run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
END_SECONDS = 30.0


class ChildFailed(Exception):
    """A process ended early; the text has its last output."""


class Child:
    """A Python module as a separate process; `spec` is its standard input, as JSON."""

    def __init__(
        self,
        module: str,
        *words: str,
        log: Path,
        spec: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("CARTEIRO_")}
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                env=clean | {"PYTHONPATH": str(ROOT)} | dict(environment or {}),
                cwd=folder or ROOT,
                stdin=subprocess.PIPE if spec else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        if self.process.stdin is not None:
            self.process.stdin.write(json.dumps(spec).encode())
            self.process.stdin.close()

    def line(self) -> str:
        """Return the next line it prints. Raise ChildFailed when it ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line:
            self.process.wait()
            words = self._log.read_text(errors="replace").strip().splitlines()[-15:]
            raise ChildFailed(f"exit {self.process.returncode}: " + "\n".join(words))
        return line.rstrip("\n")

    def json(self) -> Any:
        """Return the next line it prints, as JSON."""
        return json.loads(self.line())

    def end(self) -> None:
        """Send SIGTERM, then SIGKILL if it does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def kill(self) -> None:
        """Send SIGKILL, like a crash."""
        self.process.send_signal(signal.SIGKILL)
        self.end()


@contextmanager
def child(module: str, *words: str, **how: Any) -> Iterator[Child]:
    """Run it until the block ends."""
    started = Child(module, *words, **how)
    try:
        yield started
    finally:
        started.end()


def answer_of(module: str, log: Path, spec: Mapping[str, Any]) -> Any:
    """Run it to its end; return the one JSON line that it prints."""
    with child(module, log=log, spec=spec) as running:
        return running.json()

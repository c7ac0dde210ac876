"""Processes of a benchmark: each says one JSON line when it is ready, and is ended with its run."""

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
    """A process ended before its time; the text holds its last words."""


class Child:
    """A Python module run as a process of its own; `spec` is its standard input, as JSON."""

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
        """The next line it prints. Raises ChildFailed when it ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line:
            self.process.wait()
            words = self._log.read_text(errors="replace").strip().splitlines()[-15:]
            raise ChildFailed(f"exit {self.process.returncode}: " + "\n".join(words))
        return line.rstrip("\n")

    def json(self) -> Any:
        """The next line it prints, as JSON."""
        return json.loads(self.line())

    def end(self) -> None:
        """SIGTERM, and SIGKILL for what does not go."""
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
        """SIGKILL, as a crash is."""
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
    """Run it to its end; the one JSON line that it prints."""
    with child(module, log=log, spec=spec) as running:
        return running.json()

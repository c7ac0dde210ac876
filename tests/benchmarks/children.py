"""Processes of a benchmark: each prints one JSON line when it is ready, and ends with its run."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.process import ROOT, clean_environment


class ChildFailed(Exception):
    """A process ended early; the text has its last output."""


class Child:
    """A Python module as a separate process; `spec` is its standard input, as JSON."""

    def __init__(self, module: str, *words: str, log: Path, spec: Any = None) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                env=clean_environment() | {"PYTHONPATH": str(ROOT)}, cwd=ROOT,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(spec).encode())
        self.process.stdin.close()

    def json(self) -> Any:
        """Return the next line that it prints. Raise ChildFailed when it ends instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            words = self._log.read_text(errors="replace").strip().splitlines()[-15:]
            raise ChildFailed(f"exit {self.process.returncode}: " + "\n".join(words))
        return json.loads(line)

    def close(self) -> None:
        """Send SIGKILL, like a crash: none of them has anything to keep."""
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def child(module: str, *words: str, **how: Any) -> closing[Child]:
    """Run it until the block ends."""
    return closing(Child(module, *words, **how))


def answer_of(module: str, *words: str, log: Path, spec: Any = None) -> Any:
    """Run it to its end; return the one JSON line that it prints."""
    with child(module, *words, log=log, spec=spec) as running:
        return running.json()

"""Runs `carteiro serve` with a clock that a file moves; the file is the only argument."""

import asyncio
import os
import sys
from pathlib import Path

from gateway.cli.demo.breaking.moved_clock import MovedClock
from gateway.cli.serve import serve
from gateway.server.config import load
from gateway.server.parts import Parts
from outbox import private_files


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(file: str) -> None:
    """Serve with the configuration of the environment."""
    with private_files.private():
        config = load(None, os.environ)
        asyncio.run(serve(config, "all", _say, parts=Parts(clock=MovedClock(Path(file)))))


if __name__ == "__main__":
    main(sys.argv[1])

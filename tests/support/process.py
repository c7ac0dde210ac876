"""`carteiro` as a separate process, with its own folder and port."""

import contextlib
import io
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import HTTPError, URLError

from gateway.__main__ import main
from gateway.cli.command_line import Parser, build_parser
from gateway.cli.language import code
from gateway.server.parts import Parts
from tests.support.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
PORTS = range(20_000, 26_000)
"""Ports that deliveries may use, and that no system gives out by itself: Linux begins at 32,768."""

_turns = itertools.count(random.randrange(len(PORTS)))


def free_port() -> int:
    """Return a port that nobody uses, and that nobody gets by chance until it is used.

    Whoever asks the system for any port, for a server or for a connection, could get one that the
    system has named free before. Each call here returns another one.
    """
    for turn in itertools.islice(_turns, len(PORTS)):
        port = PORTS[turn % len(PORTS)]
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("every port is in use")


NOT_HANDED_ON = (
    "CARTEIRO_", "MAKE", "ARGS", "PYTEST_", "REQUIRE_ALL", "VIRTUAL_ENV", "PYTHONPATH",
    # The folder of a PostgreSQL server of this process, if one was started.
    "XDG_RUNTIME_DIR",
)  # fmt: skip


def clean_environment() -> dict[str, str]:
    """Return this environment without settings of the product, a virtual environment or servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return an environment with only the test's settings."""
    base = {k: v for k, v in os.environ.items() if not k.startswith("CARTEIRO_")}
    base["PYTHONPATH"] = str(ROOT)
    base["CARTEIRO_DATABASE__URL"] = f"sqlite:///{folder / 'carteiro.db'}"
    return base | settings


def carteiro(
    *words: str, folder: Path, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        cwd=folder, env=environment(folder, **settings), input=stdin,
        capture_output=True, text=True, timeout=HANG_SECONDS,
    )  # fmt: skip


@cache
def _parser(language: str, columns: str | None) -> Parser:
    """Return the parser of the commands: to build one takes longer than most commands."""
    return build_parser()


class _Captured(io.StringIO):
    """Standard error with a number, which a log asks for."""

    def fileno(self) -> int:
        return 2


def command(
    *words: str, folder: Path, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end in this process, in a tenth of the time.

    For every command but `serve` and `demo`, and from outside an event loop.
    """
    return command_of(None, *words, folder=folder, stdin=stdin, **settings)


def command_of(
    parts: Parts | None, /, *words: str, folder: Path, stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a command like `command`, made of these parts."""
    out, err = io.StringIO(), _Captured()
    before = dict(os.environ)
    given = sys.stdin
    try:
        os.environ.clear()
        os.environ.update(environment(folder, **settings))
        sys.stdin = io.StringIO(stdin)
        with (
            patch(
                "gateway.__main__.build_parser", lambda: _parser(code(), os.environ.get("COLUMNS"))
            ),
            contextlib.chdir(folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            status = main(words, parts)
    finally:
        sys.stdin = given
        os.environ.clear()
        os.environ.update(before)
    return subprocess.CompletedProcess(list(words), status, out.getvalue(), err.getvalue())


class Serving:
    """A running `carteiro serve`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.out = folder / "out.txt"
        self.err = folder / "err.txt"

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes, dict[str, str]]:
        """Send one request; return status 0 when nobody responds."""
        data = None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} | dict(headers or {})
        request = urllib.request.Request(self.url + path, data, given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=HANG_SECONDS) as answer:
                return answer.status, answer.read(), dict(answer.headers)
        except HTTPError as error:
            with error:
                return error.code, error.read(), dict(error.headers)
        except (URLError, ConnectionError):
            return 0, b"", {}

    def until(self, path: str, status: int, seconds: float = HANG_SECONDS) -> None:
        """Wait until `path` responds with `status`."""

        def holds() -> bool:
            if self.ask(path)[0] == status:
                return True
            assert self.process.poll() is None or status == 0, self.err.read_text()
            return False

        wait_until(holds, lambda: (path, status, self.err.read_text()), seconds)

    def end(self, number: signal.Signals = signal.SIGTERM, seconds: float = HANG_SECONDS) -> int:
        """Send a signal; return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(seconds)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Return its log, without a line of which only the beginning is written."""
        whole, _, _ = self.err.read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]


@contextlib.contextmanager
def serving_process(
    folder: Path, *words: str, module: str = "gateway", **settings: str
) -> Iterator[Serving]:
    """Run `carteiro serve` until the test ends it.

    `module` replaces its entry point.
    """
    settings = {"CARTEIRO_SERVER__PORT": str(free_port())} | settings
    port = int(settings["CARTEIRO_SERVER__PORT"])
    with (folder / "out.txt").open("wb") as out, (folder / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", module, "serve", *words],
            cwd=folder, env=environment(folder, **settings), stdout=out, stderr=err,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        serving = Serving(process, port, folder)
        try:
            serving.until("/readyz", 200)
            yield serving
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(HANG_SECONDS)

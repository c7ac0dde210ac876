"""The welcome reaches whom it can, and never ends a server."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.cli.serve import welcome
from gateway.server.config import load
from gateway.server.installation import public_address
from tests.support.process import Serving, environment, free_port
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("*", "localhost"), ("0", "localhost"), ("0.0.0.0", "localhost"),
        ("::", "[::1]"), ("[::]", "[::1]"), ("0:0::0", "[::1]"), ("::1", "[::1]"),
        ("[FE80::1%eth0]", "[fe80::1%25eth0]"), ("crm.lan", "crm.lan"), ("10.0.0.7", "10.0.0.7"),
    ],
)  # fmt: skip
def test_the_link_opens(host: str, shown: str) -> None:
    config = load(None, {"CARTEIRO_SERVER__HOST": host})
    assert public_address(config, 8080) == f"http://{shown}:8080"


@pytest.mark.parametrize(
    ("encoding", "told"),
    [("ascii", "Nao ha 1a conta"), ("latin-1", "Não há 1ª conta"), ("utf-8", "Não há 1ª conta")],
)
def test_letters_that_the_output_lacks_are_simpler(encoding: str, told: str) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding)
    welcome(["Não há 1ª conta", "http://x/"], lambda line: print(line, file=out, flush=True))
    assert raw.getvalue().decode(encoding) == f"{told}\nhttp://x/\n"


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "full"), ValueError("closed")])
def test_an_output_that_takes_nothing_is_logged(error: Exception) -> None:
    def say(line: str) -> None:
        raise error

    with capture_logs() as logged:
        welcome(["http://x/console/first-account?token=hunter2"], say)
    [line] = logged
    assert line["event"] == "welcome_not_shown"
    assert "carteiro user add" in line["fix"]
    assert "hunter2" not in str(line)


def no_reader() -> int:
    read, write = os.pipe()
    os.close(read)
    return write


OUTPUTS: dict[str, Callable[[], int]] = {
    "no reader": no_reader,
    "full": lambda: os.open("/dev/full", os.O_WRONLY),
    "closed": lambda: os.open("/dev/null", os.O_WRONLY),
    "ascii": lambda: os.open("out.txt", os.O_WRONLY | os.O_CREAT),
}


@pytest.mark.proof
@pytest.mark.parametrize("output", OUTPUTS)
def test_a_server_serves_with_any_output(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = free_port()
    settings = {
        "CARTEIRO_SERVER__PORT": str(port), "LC_ALL": "pt_BR.UTF-8", "PYTHONIOENCODING": "ascii",
    }  # fmt: skip
    words = [sys.executable, "-m", "gateway", "serve"]
    if output == "closed":
        words = ["sh", "-c", 'exec "$@" >&-', "sh", *words]
    number = OUTPUTS[output]()
    with (tmp_path / "err.txt").open("wb") as err:
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment(tmp_path, **settings), stdout=number, stderr=err,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    os.close(number)
    try:
        serving = Serving(process, port, tmp_path)
        wait_until(lambda: serving.ask("/readyz")[0] == 200)
        assert serving.end() == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(120)
    events = [line["event"] for line in serving.lines]
    assert ("welcome_not_shown" in events) == (output in ("no reader", "full"))
    if output == "ascii":
        shown = Path("out.txt").read_text("ascii")
        assert re.search(r"Crie a primeira conta.+\n  http://\S+token=\S+\n", shown)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('exec "$@" > /dev/full', "No space left on device"),
        ('PYTHONIOENCODING=ascii exec "$@"', "set PYTHONIOENCODING=utf-8"),
    ],
)
def test_a_command_whose_output_fails_says_so_in_one_line(
    words: str, told: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "gateway", "user", "add", "a@example.com", "--name", "É"]
    done = subprocess.run(
        ["sh", "-c", words, "sh", *command, "--password-stdin"], cwd=tmp_path,
        env=environment(tmp_path), input="correct horse\n", capture_output=True, text=True,
    )  # fmt: skip
    listed = subprocess.run(
        ["sh", "-c", words, "sh", *command[:4], "list"], cwd=tmp_path, env=environment(tmp_path),
        capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert listed.returncode == 1
    [line] = listed.stderr.splitlines()
    assert told in line

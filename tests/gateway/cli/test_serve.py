"""`carteiro serve` as a process: its output, refusals, failures and shutdown."""

import re
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.cli.test_cli import EMAIL, add_user, one_line
from tests.support.process import (
    Serving,
    carteiro,
    command,
    environment,
    free_port,
    serving_process,
)  # fmt: skip
from tests.support.waiting import wait_until

PROOF = pytest.mark.proof
"""Each test starts a process or two; what a start and a request need is shown daily."""
CONTACT = {"name": "Ana"}


def key_for(folder: Path, **settings: str) -> dict[str, str]:
    done = command("key", "add", EMAIL, "--name", "test", folder=folder, **settings)
    assert done.returncode == 0, done.stderr
    return {"X-API-Key": done.stdout.strip()}


@pytest.mark.slow
def test_the_first_start_and_the_first_request(tmp_path: Path) -> None:
    with serving_process(tmp_path) as serving:
        shown = serving.out.read_text()
        assert f"console at {serving.url}/console\n" in shown
        # Apart from the lines of the log on the same terminal.
        assert re.search(r"\n\nCreate the first account .+\n.+\n.+\n.+--name NAME\n\n", shown), (
            shown
        )
        link = re.search(r"http://\S+/console/first-account\?token=\S+", shown)
        assert link is not None
        status, page, _ = serving.ask(link[0].removeprefix(serving.url))
        assert status == 200
        assert b'name="password"' in page
        assert stat.S_IMODE((tmp_path / "carteiro.key").stat().st_mode) == 0o600
        # The alternative: the command, with its path.
        assert "  carteiro user add EMAIL --name NAME\n" in shown
        # Commands work beside the running server.
        add_user(tmp_path)
        key = key_for(tmp_path)
        status, body, headers = serving.ask(
            "/api/contacts", method="POST", body=CONTACT, headers=key
        )
        assert status == 201, body
        status, metrics, _ = serving.ask("/metrics")
        assert status == 200
        assert b"outbox_slots 256" in metrics
        request_id = headers["X-Request-Id"]
        assert serving.end() == 0
        lines = {
            line["event"]: line for line in serving.lines if line.get("request_id") == request_id
        }
        assert lines.keys() == {"request", "fanned_out"}
        assert (lines["request"]["status"], lines["request"]["route"]) == (201, "/api/contacts")


@PROOF
def test_a_failed_start_prints_one_line(tmp_path: Path) -> None:
    with serving_process(tmp_path) as serving:
        second = carteiro("serve", folder=tmp_path, CARTEIRO_SERVER__PORT=str(free_port()))
        assert second.returncode == 1
        one_line(second.stderr, str(serving.process.pid))
        other = tmp_path / "other"
        other.mkdir()
        taken = carteiro("serve", folder=other, CARTEIRO_SERVER__PORT=str(serving.port))
        assert taken.returncode == 1
        said = taken.stderr.splitlines()[-1] + "\n"
        one_line(said, f"127.0.0.1:{serving.port}", "server.port", "--port")
        assert "Traceback" not in taken.stderr
        assert serving.ask("/livez")[0] == 200
    bad = carteiro("serve", folder=other, CARTEIRO_SERVER__HOST="203.0.113.77")
    assert bad.returncode == 1
    one_line(bad.stderr.splitlines()[-1] + "\n", "203.0.113.77")


@PROOF
def test_the_port_of_the_command_line_wins(tmp_path: Path) -> None:
    port = free_port()
    settings = {"CARTEIRO_SERVER__PORT": str(port)}
    # Without --port it would listen on the configured port.
    with socket.create_server(("127.0.0.1", port)):
        other = free_port()
        with subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--port", str(other)],
            cwd=tmp_path, env=environment(tmp_path, **settings), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                shown = process.stdout.readline()
            finally:
                process.terminate()
                process.communicate()
        assert shown.endswith(f"console at http://127.0.0.1:{other}/console\n")
        assert process.returncode == 0


@PROOF
def test_a_lost_key_file_is_not_replaced(tmp_path: Path) -> None:
    assert command("migrate", folder=tmp_path).returncode == 0
    database = sqlite3.connect(tmp_path / "carteiro.db")
    try:
        database.execute(
            "insert into webhooks (id, owner_id, version, url, events, state, ordered, secret,"
            " since_pos, created_at, updated_at)"
            " values ('w', 'o', 1, 'https://a.b', '[]', 'active', 0, x'00', 0, 0, 0)"
        )
        database.commit()
    finally:
        database.close()
    done = carteiro("serve", folder=tmp_path)
    assert done.returncode == 1
    one_line(done.stderr, "carteiro.key", "backup")
    assert not (tmp_path / "carteiro.key").exists()


def slow_request(serving: Serving, headers: dict[str, str]) -> socket.socket:
    """Send a request whose body is not complete yet."""
    client = socket.create_connection(("127.0.0.1", serving.port), timeout=120)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    client.sendall(
        f"POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n{lines}\r\n".encode()
    )
    return client


@PROOF
def test_sigterm_answers_accepted_requests_and_reports_not_ready(tmp_path: Path) -> None:
    add_user(tmp_path)
    with serving_process(tmp_path) as serving:
        key = key_for(tmp_path)
        client = slow_request(serving, key)
        # The server reads it once it has responded to a later request.
        assert serving.ask("/livez")[0] == 200
        serving.process.send_signal(signal.SIGTERM)
        serving.until("/readyz", 503)
        status, body, headers = serving.ask("/readyz")
        assert (status, b"shutting down" in body) == (503, True)
        assert headers["Connection"] == "close"
        serving.until("/livez", 0)
        client.sendall(b'{"name":"Ana"}')
        answer = client.recv(65_536)
        client.close()
        assert answer.startswith(b"HTTP/1.1 201 "), answer
        assert serving.process.wait(120) == 0
        events = [line["event"] for line in serving.lines]
        assert events[-1] == "stopped"
    with serving_process(tmp_path) as again:
        assert "first-account" not in again.out.read_text()
        assert b'"total":1' in again.ask("/api/contacts", headers=key)[1]


@PROOF
def test_roles(tmp_path: Path) -> None:
    with serving_process(tmp_path, "--role", "worker") as serving:
        assert serving.ask("/api/me")[0] == 404
        assert serving.ask("/console")[0] == 404
        assert b"outbox_scheduler_last_tick" in serving.ask("/metrics")[1]
        assert serving.end() == 0
    with serving_process(tmp_path, "--role", "api") as serving:
        assert serving.ask("/api/me")[0] == 401
        assert serving.end(signal.SIGINT) == 0


@PROOF
def test_a_closed_log_pipe_does_not_stop_requests(tmp_path: Path) -> None:
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "serve"],
        cwd=tmp_path, env=environment(tmp_path, CARTEIRO_SERVER__PORT=str(port)),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        serving = Serving(process, port, tmp_path)
        wait_until(lambda: serving.ask("/livez")[0] == 200)
        # Nothing reads the pipe, so it fills up after some hundred lines.
        for _ in range(400):
            assert serving.ask("/livez")[0] == 200
        process.stderr.close()
        assert serving.ask("/livez")[0] == 200
        assert serving.end() == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(120)

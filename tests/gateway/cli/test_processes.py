"""`carteiro serve` with several processes on PostgreSQL, as an operator and a monitor see it."""

import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.cli.test_cli import one_line
from tests.support.databases import PostgresServer
from tests.support.process import Serving, carteiro, free_port, serving_process
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]

Settings = dict[str, str]


@pytest.fixture
async def settings(tmp_path: Path, postgres_server: PostgresServer) -> AsyncIterator[Settings]:
    url = await postgres_server.fresh()
    key = tmp_path / "shared.key"
    made = {
        "CARTEIRO_DATABASE__URL": url,
        "CARTEIRO_SECRETS__KEY_FILE": str(key),
        "CARTEIRO_SERVER__PROCESSES": "2",
    }
    assert carteiro("secrets", "init", folder=tmp_path, **made).returncode == 0
    yield made
    await postgres_server.drop(url)


def logged(serving: Serving, event: str) -> list[dict[str, Any]]:
    return [line for line in serving.lines if line.get("event") == event]


def until(serving: Serving, holds: Callable[[], bool]) -> None:
    wait_until(holds, serving.err.read_text)


def pids(serving: Serving) -> dict[int, int]:
    """Return the process of each place that has started last."""
    return {line["place"]: line["pid"] for line in logged(serving, "process_started")}


def worker(serving: Serving) -> int:
    """Return the process that has got the background work last; 0 while none is told."""
    return next((line["pid"] for line in reversed(logged(serving, "process_works"))), 0)


def metric(serving: Serving, series: str) -> float:
    status, text, _ = serving.ask("/metrics")
    assert status == 200
    found = re.search(rf"^{re.escape(series)} (\S+)$", text.decode(), re.MULTILINE)
    return float(found[1]) if found is not None else 0.0


@contextmanager
def running(folder: Path, settings: Settings, *words: str) -> Iterator[Serving]:
    """Run a node until the test ends it; all of its processes have started."""
    count = int(settings["CARTEIRO_SERVER__PROCESSES"])
    with serving_process(folder, *words, **settings) as serving:
        # The node is ready with the first of them.
        until(serving, lambda: count == 1 or len(pids(serving)) == count)
        yield serving


ANSWERING, MISSING = (f'server_processes{{state="{word}"}}' for word in ("answering", "missing"))
READ = 'http_server_requests_total{method="GET",route="/livez",status_class="2xx",surface="probe"}'


def test_one_command_starts_all_and_one_signal_stops_all(
    tmp_path: Path, settings: Settings
) -> None:
    port = free_port()
    settings["CARTEIRO_SERVER__PORT"] = str(port)
    with running(tmp_path, settings, "--port", str(port)) as serving:
        assert {line["port"] for line in logged(serving, "listening")} == {port}
        # It is not shared with another node.
        done = carteiro("serve", folder=tmp_path, **settings)
        assert done.returncode == 1
        one_line(done.stderr, f"127.0.0.1:{port}", "server.port")
        until(serving, lambda: "user add" in serving.out.read_text())
        shown = serving.out.read_text()
        assert shown.count("is ready; console at") == 1
        assert len(re.findall(r"first-account\?token=\S+", shown)) == 1
        there = pids(serving)
        assert there.keys() == {0, 1}
        assert serving.process.pid not in there.values()
        assert [line["pid"] for line in logged(serving, "process_works")] == [there[0]]
        # Each answers on the one port; each request is counted on the one page.
        for _ in range(20):
            assert serving.ask("/livez")[0] == 200
        until(serving, lambda: metric(serving, READ) == 20)
        # The process that has got the work tells its slots with its first claim.
        until(serving, lambda: metric(serving, "outbox_slots") == 256)
        assert (metric(serving, ANSWERING), metric(serving, MISSING)) == (2, 0)
        assert metric(serving, 'outbox_deliveries{state="ready"}') == 0
        assert serving.end() == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in there.values())
        assert len(logged(serving, "stopped")) == 3
        assert not logged(serving, "process_ended")


def test_a_process_that_is_stopped_alone_hands_over_first(
    tmp_path: Path, settings: Settings
) -> None:
    with running(tmp_path, settings) as serving:
        first, second = pids(serving)[0], pids(serving)[1]
        # The service manager may send it twice.
        os.kill(first, signal.SIGTERM)
        os.kill(first, signal.SIGTERM)
        until(serving, lambda: worker(serving) == second)
        until(serving, lambda: bool(logged(serving, "process_ended")))
        assert logged(serving, "process_ended")[0]["status"] == 0
        until(serving, lambda: metric(serving, ANSWERING) == 2)
        assert serving.end() == 0


def test_a_second_signal_ends_all_at_once(tmp_path: Path, settings: Settings) -> None:
    with running(tmp_path, settings) as serving:
        there = pids(serving)
        serving.process.send_signal(signal.SIGINT)
        until(serving, lambda: bool(logged(serving, "stopping")))
        assert serving.end(signal.SIGINT) == 1
        # They are killed before it ends; the system takes a moment to end them.
        until(serving, lambda: not any(_runs(pid) for pid in there.values()))


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_failed_start_prints_one_line(tmp_path: Path, settings: Settings) -> None:
    wrong = settings | {"CARTEIRO_DATABASE__URL": f"postgresql://u@127.0.0.1:{free_port()}/n"}
    done = carteiro("serve", folder=tmp_path, **wrong, CARTEIRO_SERVER__PORT=str(free_port()))
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    one_line("\n".join(said) + "\n", "cannot reach PostgreSQL")
    on_sqlite = carteiro("serve", folder=tmp_path, CARTEIRO_SERVER__PROCESSES="2")
    assert on_sqlite.returncode == 2
    one_line(on_sqlite.stderr, "server.processes", "set it to 1", "database.url")


def test_the_limits_of_a_node_do_not_grow_with_its_processes(
    tmp_path: Path, settings: Settings
) -> None:
    limits = {"CARTEIRO_LIMITS__WRITE_PER_SECOND": "1", "CARTEIRO_LIMITS__BURST": "8"}
    words = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    done = carteiro(*words, folder=tmp_path, stdin="correct horse\n", **settings)
    assert done.returncode == 0, done.stderr
    named = ("key", "add", "ana@example.com", "--name", "test")
    key = carteiro(*named, folder=tmp_path, **settings).stdout.strip()
    # One delivers, and leaves requests to the other two.
    limits |= {"CARTEIRO_SERVER__PROCESSES": "3"}
    with running(tmp_path, settings | limits) as serving:
        statuses = []
        for number in range(40):
            body, headers = {"name": f"n{number}"}, {"X-API-Key": key}
            made = serving.ask("/api/contacts", method="POST", body=body, headers=headers)
            statuses.append(made[0])
        nodes = {line["node"] for line in logged(serving, "request") if "contacts" in line["path"]}
        assert len(nodes) >= 2
        # A burst of eight, and one more for each second; three bursts of three would be all.
        assert 8 <= statuses.count(201) < 24
        assert statuses.count(429) == 40 - statuses.count(201)
        assert serving.end() == 0


def test_the_role_worker_works_in_all(tmp_path: Path, settings: Settings) -> None:
    with running(tmp_path, settings, "--role", "worker") as serving:
        there = set(pids(serving).values())
        until(serving, lambda: {line["pid"] for line in logged(serving, "process_works")} == there)
        until(serving, lambda: metric(serving, "outbox_slots") == 256)
        assert serving.end() == 0


def test_accepted_requests_are_answered_at_the_end(tmp_path: Path, settings: Settings) -> None:
    with running(tmp_path, settings) as serving:
        clients = []
        for _ in range(8):
            client = socket.create_connection(("127.0.0.1", serving.port), timeout=120)
            client.sendall(b"POST /api/contacts HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
            clients.append(client)
        assert serving.ask("/livez")[0] == 200
        serving.process.send_signal(signal.SIGTERM)
        until(serving, lambda: len(logged(serving, "stopping")) == 2)
        for client in clients:
            with client:
                client.sendall(b"{}")
                assert b" 401 " in client.recv(65_536).split(b"\r\n")[0]
        assert serving.process.wait(120) == 0


def test_a_frozen_process_keeps_no_connection_from_the_other(
    tmp_path: Path, settings: Settings
) -> None:
    with running(tmp_path, settings) as serving:
        there = pids(serving)
        for place in (0, 1):
            os.kill(there[place], signal.SIGSTOP)
            try:
                # With a queue for each process, half of these would hang.
                for _ in range(12):
                    assert serving.ask("/livez")[0] == 200
                assert serving.ask("/readyz")[0] == 200
            finally:
                os.kill(there[place], signal.SIGCONT)
        assert serving.end() == 0


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_hangup_stops_in_order(tmp_path: Path, settings: Settings, processes: str) -> None:
    """A terminal that closes sends it to all processes of the group, and perhaps again."""
    with running(tmp_path, settings | {"CARTEIRO_SERVER__PROCESSES": processes}) as serving:
        there = pids(serving).values()
        for pid in (*there, serving.process.pid, serving.process.pid):
            os.kill(pid, signal.SIGHUP)
        assert serving.process.wait(120) == 0
        assert len(logged(serving, "stopped")) == 1 + len(there)

"""`carteiro certify`: finds and names each fault of a receiver, and keeps to the egress rules."""

from __future__ import annotations

import io
import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.__main__ import main
from gateway.cli import certify as command
from gateway.cli.endings import Inconclusive
from gateway.server.config import Config, Egress
from gateway.server.parts import Parts
from outbox.clock import SystemClock
from outbox.errors import OutboxError
from outbox.sending.egress_guard import Guard
from outbox.sending.request import new_secret
from outbox.worker.certification.checks import NAMES
from tests.support.faulty_receivers import FAULTY, Careful
from tests.support.receiver import Visit, hostile, receiver

SECRET = new_secret(b"q" * 32)
CONFIG = Config(egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))


class Work(SystemClock):
    """A clock that only the work of a receiver moves on."""

    def __init__(self, careful: Careful) -> None:
        self._careful = careful

    def monotonic(self) -> float:
        return self._careful.worked


async def run(
    target: str, config: Config = CONFIG, careful: Careful | None = None, **given: Any
) -> tuple[list[str], OutboxError | None]:
    """Return the lines, and how it ended."""
    lines: list[str] = []
    words: dict[str, Any] = {
        "target": target, "secret": SECRET, "secret_file": None, "header": None, "timeout": 60.0,
        "loopback": False, "json": True, "parts": Parts(clock=Work(careful or Careful(SECRET))),
    }  # fmt: skip
    try:
        await command.certify(config, Namespace(**words | given), lines.append)
    except OutboxError as error:
        return lines, error
    return lines, None


async def report_of(careful: Careful, **given: Any) -> tuple[dict[str, Any], OutboxError | None]:
    async with receiver(answer=careful.handle) as there:
        lines, ended = await run(f"{there.url}/hook", careful=careful, **given)
    report: dict[str, Any] = json.loads(lines[0])
    return report, ended


def faults_of(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the codes of the checks that were judged and did not pass."""
    return {
        one["check"]: one["code"]
        for one in report["checks"]
        if one["verdict"] in ("failed", "warning")
    }


@pytest.mark.parametrize("name", FAULTY)
async def test_a_fault_is_found_and_named(name: str) -> None:
    faulty = FAULTY[name]
    report, ended = await report_of(faulty(SECRET))
    assert faults_of(report) == faulty.finds
    failed = [one["check"] for one in report["checks"] if one["verdict"] == "failed"]
    assert report["result"] == ("failed" if failed else "passed")
    assert (ended is None) is (not failed)
    texts = {one["check"]: one["text"] for one in report["checks"]}
    assert all(len(texts[check]) > 30 for check in faulty.finds)


@pytest.mark.proof
async def test_a_receiver_that_leaves_a_body_unread_is_found() -> None:
    """Its answer is right, and the next request of the connection begins in the middle."""

    async def unread(visit: Visit) -> None:
        while True:
            whole = (await visit.head()).startswith(b"POST ")
            await visit.write(b"HTTP/1.1 %s -\r\n\r\n" % (b"204" if whole else b"400"))

    async with hostile(unread) as there:
        lines, _ = await run(there.url, timeout=3.0, parts=Parts())
    faults = faults_of(json.loads(lines[0]))
    assert faults["kept_connection"] == "refused"


async def test_it_is_no_way_around_the_egress_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"inside.example": ["93.184.216.34", "10.1.2.3"], "loop.example": ["127.0.0.1"]}
    monkeypatch.setattr(
        command, "Guard", lambda rules, clock: Guard(rules, clock, lambda host: answers[host])
    )
    careful = Careful(SECRET)
    async with receiver(answer=careful.handle) as there:
        port = there.url.rpartition(":")[2]
        closed = Config(egress=Egress(allow_http=True))
        for url in (
            there.url + "/", f"http://localhost:{port}/", f"http://loop.example:{port}/",
            f"http://inside.example:{port}/",
        ):  # fmt: skip
            _, ended = await run(url, closed)
            assert isinstance(ended, Inconclusive)
            assert "deliveries to this address are not allowed; allow it with --loopback" in str(
                ended
            )
        _, ended = await run(there.url, Config())
        assert "plain http is not allowed; use https, or allow it with --loopback" in str(ended)
        # The option opens this machine alone.
        _, ended = await run(f"http://inside.example:{port}/", closed, loopback=True)
        assert "not allowed" in str(ended)
        assert there.requests == []
        for url in (there.url + "/", f"http://loop.example:{port}/"):
            assert (await run(url, Config(), loopback=True))[1] is None


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://127.0.0.1:1/", "port 1 is not allowed"),
        ("http://no-such-host.invalid:8080/", "genuine: no such host"),
        ("ftp://127.0.0.1/", "must start with http:// or https://"),
        ("http://127.0.0.1:99999/", "the port"),
    ],
)
async def test_what_cannot_be_reached_is_not_judged(target: str, why: str) -> None:
    _, ended = await run(target)
    assert isinstance(ended, Inconclusive)
    assert why in str(ended)


async def test_the_secret_comes_from_a_file_the_input_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(command.SECRET_VARIABLE, raising=False)
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    async with receiver(answer=Careful(SECRET).handle) as there:
        _, ended = await run(there.url, secret=None)
        assert isinstance(ended, Inconclusive)
        assert "$WEBHOOK_SECRET, or a file of it with --secret-file" in str(ended)
        _, ended = await run(there.url, secret="x")
        assert "whsec_ included" in str(ended)
        assert there.requests == []
        assert (await run(there.url, secret=None, secret_file=str(file)))[1] is None
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\n"))
        assert (await run(there.url, secret=None, secret_file="-"))[1] is None
        monkeypatch.setenv(command.SECRET_VARIABLE, SECRET)
        assert (await run(there.url, secret=None))[1] is None
        _, ended = await run(there.url, secret=None, secret_file=str(tmp_path / "none"))
        assert "--secret-file" in str(ended)


async def test_people_read_a_line_a_check_and_the_counts() -> None:
    async with receiver(answer=Careful(SECRET).handle) as there:
        lines, _ = await run(there.url, json=False)
    assert len(lines) == len(NAMES) + 3
    assert lines[0].startswith("ok      Test event, correctly signed")
    assert lines[-2].startswith("The receiver passes. 42 passed, 0 with a warning, 0 failed")
    assert "The receiver must now have stored each of" in lines[-1]
    async with receiver(answer=FAULTY["has another secret"](SECRET).handle) as there:
        lines, _ = await run(there.url, json=False)
    assert [line[:7] for line in lines[:2]] == ["FAILED ", "ok     "]
    assert lines[2].startswith(f"{len(NAMES) - 2} further checks were not tried")


def test_no_verdict_and_wrong_use_exit_with_2(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    words = ["--config", str(config), "certify", "http://127.0.0.1:9/", "--secret", SECRET]
    assert main(words) == 2
    assert main([*words, "--loopback", "--header", "x"]) == 2

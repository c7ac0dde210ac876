"""`carteiro doctor`: names the failing step, exits with 1, and keeps to the egress rules."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import pytest

from gateway import texts
from gateway.cli import doctor as command
from gateway.cli.endings import Ended
from gateway.server.config import Config, Egress, Secrets
from gateway.server.config import Database as Settings
from gateway.server.parts import Parts
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.errors import OutboxError
from outbox.sending.egress_guard import Guard
from outbox.sending.oddities import NOTES
from outbox.sending.request import new_secret
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.outbox.worker.test_doctor import patients
from tests.support.drain import add_webhook
from tests.support.hostilities import ODD, says_and_closes
from tests.support.receiver import hostile, receiver

EGRESS = Egress(allow_http=True, allow=("127.0.0.0/8",))


class Still(SystemClock):
    """A clock that stands until a receiver does not answer."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def stall(self) -> None:
        self.seconds += 2.0


CLOCK = Still()


async def doctor(
    target: str | None, config: Config | None = None, **given: Any
) -> tuple[list[str], str]:
    """Return the lines, and why it ended: `exit 1` when the lines say so, or its message."""
    lines: list[str] = []
    parts = Parts(clock=CLOCK)
    words: dict[str, Any] = {
        "target": target, "secret": None, "timeout": 1.0, "json": False, "parts": parts,
    }  # fmt: skip
    try:
        await command.doctor(
            config or Config(egress=EGRESS), Namespace(**words | given), lines.append
        )
    except Ended as end:
        return lines, f"exit {end.status}"
    except OutboxError as error:
        return lines, str(error)
    return lines, ""


async def test_each_fault_is_named_and_told_on_one_line_and_once() -> None:
    names = {
        "dns": "DNS", "connect": "Connect", "tls": "TLS", "answer": "Response", "egress": "Egress",
    }  # fmt: skip
    async with patients(CLOCK.stall) as all_of_them:
        for patient in all_of_them:
            lines, reason = await doctor(patient.url)
            if patient.step is None:
                assert reason == ""
                assert "A delivery to this receiver would succeed." in lines
                continue
            # Nothing follows the lines but the exit status.
            assert reason == "exit 1", patient.name
            [failed] = [line for line in lines if line.startswith("FAILED")]
            assert failed.startswith(f"FAILED  {names[patient.step]} "), patient.name
            assert patient.value.lower() in failed.lower()
            verdict = f"A delivery to this receiver would fail: {patient.outcome}."
            assert [line.replace("http_410", "http_4xx") for line in lines].count(verdict) == 1
            [shown], reason = await doctor(patient.url, json=True)
            assert reason == "exit 1"
            shown = json.loads(shown)
            assert (shown["failedStep"], shown["status"]) == (patient.step, patient.status)
            assert shown["succeeds"] is False
            assert shown["steps"][-1]["text"].removesuffix(".").partition(": ")[0] in failed


async def test_what_is_odd_about_a_response_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with hostile(says_and_closes(ODD)) as there:
        lines, reason = await doctor(there.url)
        assert reason == "exit 1"
        assert any(NOTES["version"] in line for line in lines)
        [shown], _ = await doctor(there.url, json=True)
        assert json.loads(shown)["notes"] == [
            NOTES[one] for one in ("line_end", "name", "control", "version")
        ]
        monkeypatch.setenv("LC_ALL", "pt_BR.UTF-8")
        lines, _ = await doctor(there.url)
        assert any("a versão da resposta não é HTTP/1.1" in line for line in lines)


async def test_it_is_no_way_around_the_egress_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"inside.example": ["93.184.216.34", "10.1.2.3"], "loop.example": ["127.0.0.1"]}
    monkeypatch.setattr(
        command, "Guard", lambda rules, clock: Guard(rules, clock, lambda host: answers[host])
    )
    async with receiver() as there:
        port = there.url.rpartition(":")[2]
        closed = Config(egress=Egress(allow_http=True))
        for url in (there.url + "/", f"http://localhost:{port}/", f"http://loop.example:{port}/"):
            lines, reason = await doctor(url, closed)
            assert reason == "exit 1"
            [failed] = [line for line in lines if line.startswith("FAILED")]
            assert failed.startswith("FAILED  Egress ")
            assert "Deliveries to this address are not allowed" in failed
        assert there.requests == []
        # Who runs the command reads the addresses, to change the rules.
        lines, _ = await doctor(f"http://inside.example:{port}/", closed)
        assert "Not allowed: 10.1.2.3." in " ".join(lines)
        assert "93.184.216.34, 10.1.2.3" in " ".join(lines)
        lines, reason = await doctor(there.url + "/", Config())
        assert reason == "exit 1"
        # One message names both settings that a receiver on this machine needs.
        assert (
            "Plain http is not allowed; use https, or allow it with [egress] allow_http, and "
            "[egress] allow for a private address, in config.local.toml and restart."
        ) in lines[0]


async def test_the_right_secret_passes_and_its_own_is_explained() -> None:
    secret = new_secret(b"q" * 32)

    async with receiver(secret=secret) as there:
        lines, reason = await doctor(there.url + "/", secret=secret)
        assert reason == ""
        _, reason = await doctor(there.url + "/", secret="x")
        assert reason.startswith("--secret must be")
    async with patients(CLOCK.stall) as all_of_them:
        [refusing] = [one for one in all_of_them if one.name == "401"]
        lines, _ = await doctor(refusing.url)
        assert texts.of("en")("cli.doctor.unknown_secret") in lines
        lines, _ = await doctor(refusing.url, secret=secret)
        assert texts.of("en")("cli.doctor.unknown_secret") not in lines


async def test_a_webhook_by_its_id_signs_with_its_own_secret(db: Database, db_url: str) -> None:
    keys = new_key_line(db.ids, db.clock.wall()).strip()
    ring = parse_keys(keys, db.ids, "the test's keys")
    config = Config(egress=EGRESS, database=Settings(url=db_url), secrets=Secrets(keys=keys))
    async with receiver() as there:
        webhook_id, there.secret = await add_webhook(
            db, ring, there.url + "/hook", "contact.updated", headers=(("X-Own", "v"),)
        )
        lines, reason = await doctor(webhook_id.upper(), config)
        assert reason == "", lines
        headers = dict(there.requests[0].headers)
        assert (headers["X-Own"], headers["X-Webhook-Event"]) == ("v", "contact.updated")
        assert headers["X-Webhook-Test"] == "1"
    _, reason = await doctor("0" * 24, config)
    assert reason.startswith("there is no webhook 000")


async def test_the_retries_are_printed_with_their_range() -> None:
    lines, _ = await doctor("ftp://x/", Config())
    [first] = [line for line in lines if line.startswith("    2 ")]
    assert "after       5 s" in first
    assert len([line for line in lines if "  after " in line]) == 9


async def test_webhooks_whose_requests_have_changed_are_listed(db: Database, db_url: str) -> None:
    keys = new_key_line(db.ids, db.clock.wall()).strip()
    ring = parse_keys(keys, db.ids, "the test's keys")
    config = Config(egress=EGRESS, database=Settings(url=db_url), secrets=Secrets(keys=keys))
    assert await doctor(None, config) == ([texts.of("en")("cli.doctor.none_moved")], "")
    same = ("/hook", "", "/a%2Fb?x=1&y=%C3%A9", "/ação", "//a", "/a b".replace(" ", "+"))
    for url in same:
        await add_webhook(db, ring, f"https://hooks.example{url}", "contact.updated")
    moved = {
        "/?sig=a%2Fb": "/?sig=a/b", "/%3A?": "/:", "/a/../b": "/b", "/?a[]=1": "/?a%5B%5D=1",
        "/é?%c3%a9=%": "/%C3%A9?%C3%A9=%25",
    }  # fmt: skip
    ids = [
        (await add_webhook(db, ring, f"https://hooks.example{url}", "contact.updated"))[0]
        for url in moved
    ]
    lines, reason = await doctor(None, config)
    assert reason == ""
    assert dict(zip(lines[::2], lines[1::2], strict=False)) == {
        f"{webhook_id}  https://hooks.example{url.replace('é', '%C3%A9')}": f"  before: {before}"
        for webhook_id, (url, before) in zip(ids, moved.items(), strict=True)
    }
    assert lines[-1] == texts.of("en")("cli.doctor.moved")
    shown = [json.loads(line) for line in (await doctor(None, config, json=True))[0]]
    assert {one["id"]: one["before"] for one in shown} == dict(
        zip(ids, moved.values(), strict=True)
    )

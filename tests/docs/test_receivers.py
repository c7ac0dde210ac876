"""The receivers of the docs take a real delivery once, and `carteiro certify` finds no fault.

test_vectors.py has the reasons why they refuse a request.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.architecture.tree import ROOT
from tests.docs.languages import LANGUAGES, PROGRAMS, SERVERS, command, prepare
from tests.docs.pages import blocks
from tests.docs.receivers import KINDS, Running, running
from tests.support.console import CONFIG, guest
from tests.support.databases import SqliteFiles
from tests.support.drain import inbox
from tests.support.site import Site, serving

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Delivery:
    """A request that Carteiro has sent, and the secret of its webhook."""

    secret: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    async def comes_twice(self, url: str) -> None:
        """Send it to a receiver that must accept it each time."""
        sent = {k: v for k, v in self.headers.items() if k not in ("Host", "Content-Length")}
        async with aiohttp.ClientSession() as http:
            for _ in range(2):
                async with http.post(url, data=self.body, headers=sent) as answer:
                    assert answer.status == 204, await answer.text()


@pytest.fixture
async def site(tmp_path: Path, sqlite_files: SqliteFiles) -> AsyncIterator[Site]:
    url = await sqlite_files.fresh(tmp_path)
    db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
    async with serving(db, CONFIG, role="all") as site:
        yield site
    await db.close()


@pytest.fixture
async def delivery(site: Site) -> Delivery:
    """A write by the API, delivered to a webhook from the console."""
    owner = await site.user()
    async with inbox() as box, guest(site) as maria:
        await maria.sign_in()
        page = await maria.webhook(box.url, "contact.created")
        secret = page.test_id("webhook-secret")
        assert secret
        key = {"X-API-Key": await site.key(owner)}
        async with site.http.post("/api/contacts", json={"name": "João"}, headers=key) as answer:
            assert answer.status == 201
        [got] = await box.until(1)
    return Delivery(secret, got.headers, got.body)


def test_the_page_has_every_language() -> None:
    assert {*LANGUAGES} <= {folder.name for folder in PROGRAMS.iterdir()}
    for language in LANGUAGES:
        assert command(language)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_receiver_accepts_what_is_ours_once_and_nothing_else(
    delivery: Delivery, tmp_path: Path, kind: str
) -> None:
    async with running(kind, tmp_path, delivery.secret) as there:
        if kind in SERVERS:
            await _interrupted(there)
        await delivery.comes_twice(there.url)
        report = await certified(there.url, delivery.secret, tmp_path)
        said = await there.printed()
    assert said.count(f"contact.created {delivery.id}") == 1, said
    assert all(said.count(event_id) == 1 for event_id in report["accepted"])
    assert not any(event_id in said for event_id in report["forbidden"])


async def certified(url: str, secret: str, folder: Path) -> dict[str, Any]:
    """Run `carteiro certify` in an empty folder, where it leaves nothing; return its report."""
    home = folder / "empty"
    home.mkdir()
    process = await asyncio.create_subprocess_exec(
        str(ROOT / ".venv" / "bin" / "carteiro"), "certify", url, "--json", "--loopback",
        cwd=home, stdout=PIPE, stderr=PIPE, env=os.environ | {"WEBHOOK_SECRET": secret},
    )  # fmt: skip
    out, err = await process.communicate()
    report: dict[str, Any] = json.loads(out)
    # How long it takes is also a matter of what else runs on the machine.
    wrong = [
        one for one in report["checks"] if one["verdict"] != "passed" and one["code"] != "slow"
    ]
    assert wrong == []
    assert (process.returncode, report["result"], err) == (0, "passed", b"")
    assert [*home.iterdir()] == []
    return report


async def test_the_first_receiver_accepts_what_is_ours_and_survives_the_rest(
    delivery: Delivery, tmp_path: Path
) -> None:
    [first] = [
        block for block in blocks("docs/tutorials/first-webhook.md") if block.name == "receiver.py"
    ]
    async with running("python", tmp_path, delivery.secret, receiver=first.text) as there:
        await delivery.comes_twice(there.url)
        for headers in ("", "webhook-timestamp: soon\r\n"):
            assert await _answered(there, headers) == 401
        await certified(there.url, delivery.secret, tmp_path)
        said = await there.printed()
    assert "Traceback" not in said
    assert said.count("verified {") >= 3, said


async def _interrupted(there: Running) -> None:
    """A client that goes away in the middle of its body; the receiver must live on."""
    for length in (1000, 100_000):
        _, writer = await asyncio.open_connection("127.0.0.1", there.port)
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + b"x" * (length // 2))
        await writer.drain()
        writer.transport.abort()


async def _answered(there: Running, headers: str) -> int:
    """The status of the answer to a POST with these header lines only."""
    reader, writer = await asyncio.open_connection("127.0.0.1", there.port)
    try:
        writer.write(f"POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        async with asyncio.timeout(20):
            line = await reader.readline()
        assert line, "the connection was closed without an answer"
        return int(line.split()[1])
    finally:
        writer.close()
        await writer.wait_closed()


def test_the_shell_script_tells_right_from_wrong(tmp_path: Path, delivery: Delivery) -> None:
    prepare("shell", tmp_path)
    (tmp_path / "body.json").write_bytes(delivery.body)
    (tmp_path / "wrong.json").write_bytes(delivery.body + b" ")
    words = command("shell").replace("019a…", delivery.id)
    words = words.replace("1795271400", delivery.headers["webhook-timestamp"])
    words = words.replace("v1,…", delivery.headers["webhook-signature"])
    words = f"export WEBHOOK_SECRET={delivery.secret}; {words}"
    right = _bash(words, tmp_path)
    wrong = _bash(words.replace("body.json", "wrong.json"), tmp_path)
    assert right == (0, "accepted\n")
    assert wrong == (1, "refused: wrong_signature\n")


def _bash(words: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(["bash", "-c", words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout


async def test_the_feed_is_read_once_and_then_from_its_place(site: Site, tmp_path: Path) -> None:
    found = blocks("docs/how-to/recover-events.md")
    [command] = [block for block in found if "reconcile.py" in block.text]
    shutil.copy(ROOT / "docs/examples/python/reconcile.py", tmp_path)
    key = await site.key(await site.user())
    words = command.text.replace("http://127.0.0.1:8080", site.url).replace("$KEY", key)
    asked = {"X-API-Key": key}
    said = []
    for number in (0, 150, 1):  # more than a page, then what has come since
        for n in range(number):
            async with site.http.post(
                "/api/contacts", json={"name": str(n)}, headers=asked
            ) as answer:
                assert answer.status == 201
        if number:
            await _fanned_out(site, asked)
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", words), cwd=tmp_path, stdout=PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
        said.append(out.decode().splitlines())
    assert [len(lines) for lines in said] == [0, 150, 1]
    assert len({line.split(" ", 1)[0] for lines in said for line in lines}) == 151
    assert json.loads(said[2][0].split(" ", 1)[1])["event"] == "contact.created"


async def _fanned_out(site: Site, headers: dict[str, str]) -> None:
    """Return when every event has its place in the feed."""
    async with asyncio.timeout(20):
        while await site.db.read(_waiting):
            await asyncio.sleep(0.02)


async def _waiting(tx: Tx) -> int:
    row = await tx.one("select count(*) as n from events where seq is null")
    assert row is not None
    return int(row["n"])

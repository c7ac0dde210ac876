"""`carteiro listen`: a local program gets each event as a webhook would, once, in order."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import subprocess
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import ClientSession, web

from gateway.cli.listening import listen as listen_command
from gateway.cli.listening.listen import listen
from gateway.cli.listening.source import Address, Source
from gateway.server.app_keys import KEYRING
from gateway.server.config import Config
from outbox.database.transaction import Database
from outbox.errors import OutboxError
from outbox.ids import Ids
from outbox.sending.request import compose, new_secret
from tests.gateway.cli.test_cli import EMAIL, add_user
from tests.support.console import CONFIG
from tests.support.drain import add_webhook
from tests.support.process import Serving, command, environment, free_port, serving_process
from tests.support.receiver import receiver
from tests.support.site import Site, serving
from tests.support.waiting import until

SECRET = new_secret(b"s" * 32)


class Listening:
    """A running `listen` with its lines."""

    def __init__(self, server: str, key: str, **given: Any) -> None:
        words: dict[str, Any] = {
            "key": key, "server": server, "forward": None, "after": None, "types": None,
            "secret": SECRET, "body": False,
        }  # fmt: skip
        self.lines: list[str] = []
        self._task = asyncio.create_task(
            listen(Config(), Namespace(**words | given), self.lines.append)
        )

    @property
    def events(self) -> list[str]:
        return [line.split()[1] for line in self.lines[2:]]

    async def until(self, count: int) -> None:
        """Wait for the lines of `count` events; 0 waits until it listens."""
        await until(lambda: self._task.done() or len(self.lines) >= count + 2)
        if self._task.done():
            self._task.result()

    async def end(self) -> None:
        self._task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._task

    async def refusal(self) -> str:
        """Return why it ended."""
        with pytest.raises(OutboxError) as error:
            await self._task
        return str(error.value)


@asynccontextmanager
async def listening(server: str, key: str, **given: Any) -> AsyncIterator[Listening]:
    running = Listening(server, key, **given)
    await running.until(0)
    try:
        yield running
    finally:
        await running.end()


@pytest.fixture
async def site(db: Database) -> AsyncIterator[Site]:
    async with serving(db, CONFIG, role="all") as site:
        yield site


async def write(site: Site, key: str, name: str) -> str:
    """Create a contact; return its id."""
    async with site.http.post(
        "/api/contacts", json={"name": name}, headers={"X-API-Key": key}
    ) as answer:
        assert answer.status == 201
        return str((await answer.json())["id"])


async def test_a_program_gets_exactly_what_a_webhook_gets(site: Site) -> None:
    owner = await site.user()
    key = await site.key(owner)
    async with receiver(secret=SECRET) as local, receiver() as remote:
        await add_webhook(
            site.db, site.app[KEYRING], f"{remote.url}/hook", "contact.created", owner=owner
        )
        await write(site, key, "before")
        await remote.wait(1)
        async with listening(site.url, key, forward=f"{local.url}/hook") as heard:
            await write(site, key, "João")
            await heard.until(1)
            [event] = heard.events
            assert event == "contact.created"
            assert heard.lines[-1].split()[3:5] == ["200", "in"]
        [sent] = local.requests
        _, delivered = await remote.wait(2)
        assert sent.body == delivered.body
        assert "João".encode() in sent.body
        ours, theirs = dict(sent.headers), dict(delivered.headers)
        # The trace of the request stays with the gateway.
        del theirs["traceparent"]
        assert list(ours) == list(theirs)
        different = {name for name in ours if ours[name] != theirs[name]}
        assert different <= {
            "Host", "X-Webhook-Signature", "webhook-signature", "webhook-timestamp",
        }  # fmt: skip


async def test_only_the_wanted_events(site: Site) -> None:
    key = await site.key(await site.user())
    async with listening(site.url, key, types="contact.deleted", body=True) as heard:
        contact = await write(site, key, "x")
        async with site.http.delete(
            f"/api/contacts/{contact}", headers={"X-API-Key": key}
        ) as answer:
            assert answer.status in (200, 204)
        await heard.until(1)
        assert heard.events[0] == "contact.deleted"
        assert '"event": "contact.deleted"' in heard.lines[3]


async def test_a_failing_program_is_told_and_does_not_stop_it(site: Site) -> None:
    key = await site.key(await site.user())

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500 if b'"a"' in await request.read() else 204)

    async with receiver() as local:
        local.answer = answer
        async with listening(site.url, key, forward=local.url + "/") as heard:
            await write(site, key, "a")
            await write(site, key, "b")
            await heard.until(2)
            assert "FAILED 500 http_5xx" in heard.lines[-2]
            assert "204 in" in heard.lines[-1]
    async with listening(site.url, key, forward=f"http://localhost:{free_port()}/") as heard:
        await write(site, key, "a")
        await heard.until(1)
        assert "FAILED connect_error: connection refused" in heard.lines[-1]


async def test_a_key_or_a_place_that_the_server_refuses_ends_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await site.key(await site.user())
    monkeypatch.delenv("CARTEIRO_KEY", raising=False)
    assert "401: " in await Listening(site.url, "crt_wrong").refusal()
    assert (
        "400: after: Send the nextCursor"
        in await Listening(site.url, key, after=site.db.ids.new(site.db.clock.wall())).refusal()
    )
    assert "there is no API key" in await Listening(site.url, "").refusal()
    assert "is not the id of an event" in await Listening(site.url, key, after="x").refusal()
    assert "--secret must be" in await Listening(site.url, key, secret="abc").refusal()
    assert "is not a URL" in await Listening(site.url, key, forward="localhost").refusal()
    assert "--server x: it is not a URL" in await Listening("x", key).refusal()
    assert "ftp" in await Listening(site.url, key, forward="ftp://localhost:1/").refusal()
    async with receiver() as other:
        assert "is no page of events" in await Listening(other.url, key).refusal()


async def test_a_wrong_signature_of_our_own_is_never_forwarded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check is the receivers' own; here the sender signs another body."""
    right = compose

    def wrong(request: Any, **more: Any) -> Any:
        return right(replace(request, body=request.body + b" "), **more)

    monkeypatch.setattr(listen_command, "compose", wrong)
    key = await site.key(await site.user())
    async with receiver() as local, listening(site.url, key, forward=local.url + "/") as heard:
        await write(site, key, "a")
        await heard.until(1)
        assert "NOT VERIFIED: X-Webhook-Signature does not match" in heard.lines[-1]
        assert local.requests == []


@contextmanager
def listening_process(folder: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run `carteiro listen` as a program of its own, with the address of the configuration."""
    with (folder / "heard").open("wb") as out, (folder / "notes").open("wb") as err:
        program = subprocess.Popen(
            [sys.executable, "-m", "gateway", "listen"], cwd=folder, stdout=out, stderr=err,
            env=environment(folder, **settings),
        )  # fmt: skip
        try:
            yield program
        finally:
            program.kill()
            program.wait()


@pytest.mark.proof
def test_it_survives_a_restart_and_ends_with_130(tmp_path: Path) -> None:
    add_user(tmp_path)
    key = command("key", "add", EMAIL, "--name", "k", folder=tmp_path).stdout.strip()
    settings = {"CARTEIRO_SERVER__PORT": str(free_port())}
    contact = {"X-API-Key": key}

    def create(there: Serving, name: str) -> int:
        body = {"name": name}
        return there.ask("/api/contacts", method="POST", body=body, headers=contact)[0]

    def heard(words: str, count: int) -> None:
        asyncio.run(until(lambda: (tmp_path / "heard").read_text().count(words) >= count))

    with ExitStack() as stack:
        # The two programs start one after the other, because a slow machine starts each slowly.
        with serving_process(tmp_path, **settings) as there:
            program = stack.enter_context(listening_process(tmp_path, CARTEIRO_KEY=key, **settings))
            heard("Signing secret: whsec_", 1)
            assert create(there, "A") == 201
            heard("contact.created", 1)
            there.end()
        with serving_process(tmp_path, **settings) as there:
            assert create(there, "B") == 201
            heard("contact.created", 2)
            events = json.loads(there.ask("/api/events", headers=contact)[1])["data"]
            program.send_signal(signal.SIGINT)
            assert program.wait(120) == 130
    lines = (tmp_path / "heard").read_text().splitlines()[2:]
    assert [line.split()[2] for line in lines] == [event["id"] for event in events]
    notes = (tmp_path / "notes").read_text()
    assert "The feed cannot be read: http://127.0.0.1" in notes
    assert "The feed can be read again." in notes
    assert notes.endswith(f"carteiro: To continue here: --after {events[-1]['id']}\n")
    assert "Traceback" not in notes


async def silence(server: str) -> str:
    """The first line about a server that cannot be read."""
    told: asyncio.Queue[str] = asyncio.Queue()
    async with ClientSession() as http:
        source = Source(http, Address(server, "crt_x"), Ids(), told.put_nowait)
        task = asyncio.create_task(source.newest())
        line = await told.get()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    start, _, end = line.removeprefix("The feed cannot be read: ").partition(f"{server} ")
    assert start == ""
    return end.partition(". Next try")[0]


async def test_a_server_that_cannot_be_read_is_told_with_the_reason() -> None:
    closed = f"http://127.0.0.1:{free_port()}"
    assert await silence(closed) == "accepts no connection"
    assert await silence("https://crm.invalid") == "is a host name without an address"
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)
    async with serving_http(tls) as port:
        said = await silence(f"https://127.0.0.1:{port}")
        assert said.startswith("has a certificate that is refused: unable to get")
    async with serving_http(None) as port:
        said = await silence(f"https://127.0.0.1:{port}")
        assert said == "does not speak TLS; is it plain http?"


@asynccontextmanager
async def serving_http(tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """A web server, with TLS or without."""
    runner = web.AppRunner(web.Application())
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()
    yield port
    await runner.cleanup()

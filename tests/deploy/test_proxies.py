"""The proxies of docs/deploy before a real gateway: who its client is, and restarts of nodes."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from tests.deploy.proxies import HOST, PROXIES, Proxy, lines_that_replace, running
from tests.support.process import Serving, carteiro, free_port, serving_process
from tests.support.receiver import receiver
from tests.support.waiting import HANG_SECONDS, until

CLIENT = "127.0.0.2"
"""The client's address; the proxy's is 127.0.0.1, which alone is trusted."""
FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "http",
    "Forwarded": "for=203.0.113.9;host=evil.example;proto=http",
}
BODY_BYTES = 1_048_576
FILE_BYTES = 64 * 1_048_576
SETTINGS = {
    "CARTEIRO_SERVER__PUBLIC_URL": f"https://{HOST}",
    "CARTEIRO_SERVER__TRUSTED_PROXIES": "127.0.0.1/32",
    "CARTEIRO_LIMITS__CONNECTIONS_PER_ADDRESS": "1000",
}
CLIENTS = 3
PAUSE_SECONDS = 0.02
SLOW_CHECK_SECONDS = 1.0
BETWEEN = 60
"""Answers between two steps of a rolling restart."""


class Here(AbstractResolver):
    """Resolves every name to this machine."""

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host="127.0.0.1", port=port, family=2, proto=0, flags=0)
        ]

    async def close(self) -> None:
        pass


@asynccontextmanager
async def client(proxy: Proxy) -> AsyncIterator[aiohttp.ClientSession]:
    """A client at another address than the proxy's, which checks the certificate."""
    connector = aiohttp.TCPConnector(
        local_addr=(CLIENT, 0),
        resolver=Here(),
        ssl=ssl.create_default_context(cafile=str(proxy.authority)),
    )
    async with aiohttp.ClientSession(
        f"https://{HOST}:{proxy.https}", connector=connector, headers={"Host": HOST}
    ) as http:
        yield http


@contextmanager
def node(folder: Path, **settings: str) -> Iterator[Serving]:
    folder.mkdir(exist_ok=True)
    with serving_process(folder, **(SETTINGS | settings)) as serving:
        yield serving


def addresses(serving: Serving, path: str) -> list[str]:
    """The clients of a path as the gateway's log names them."""
    return [line["address"] for line in serving.lines if line.get("path") == path]


def logged(serving: Serving, path: str, times: int) -> bool:
    return len(addresses(serving, path)) >= times


@pytest.mark.parametrize("name", PROXIES)
async def test_a_proxy_hides_the_metrics_and_tells_the_client_whatever_it_says(
    name: str, tmp_path: Path
) -> None:
    with node(tmp_path) as serving, running(name, tmp_path / name, [serving.port]) as proxy:
        async with client(proxy) as http:
            for headers in ({}, FORGED):
                async with http.get("/api/contacts", headers=headers) as answer:
                    assert answer.status == 401
                async with http.get("/console/sign-in", headers=headers) as answer:
                    assert answer.status == 200
                    assert "Strict-Transport-Security" in answer.headers
                    page = await answer.text()
                    cookies = answer.headers.getall("Set-Cookie", [])
                    assert all("Secure" in cookie for cookie in cookies), page
            # The log is written a moment after the response.
            for path in ("/api/contacts", "/console/sign-in"):
                await until(partial(logged, serving, path, 2))
                assert addresses(serving, path) == [CLIENT, CLIENT]
            for path in ("/metrics", "/%6detrics", "/%6D%65trics", "/metrics?a=b"):
                async with http.get(URL(path, encoded=True)) as answer:
                    assert answer.status == 404, path
            assert addresses(serving, "/metrics") == []
            plain = f"http://127.0.0.1:{proxy.http}/console?x=1"
            async with http.get(plain, allow_redirects=False) as answer:
                assert answer.status == 308
                assert answer.headers["Location"].startswith(f"https://{HOST}")
                assert answer.headers["Location"].endswith("/console?x=1")
            await bodies_of_every_size_pass(http, tmp_path)
        assert not [line for line in serving.lines if "untrusted" in line["event"]]


async def bodies_of_every_size_pass(http: aiohttp.ClientSession, folder: Path) -> None:
    """The gateway itself judges the size of a body, not the proxy."""
    add = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    added = carteiro(*add, folder=folder, stdin="a long pass phrase")
    assert added.returncode == 0, added.stderr
    key = carteiro("key", "add", "ana@example.com", "--name", "test", folder=folder)
    headers = {"X-API-Key": key.stdout.strip(), "Content-Type": "application/json"}
    empty = json.dumps({"name": ""})
    for length, status in ((len(empty) + 3, 201), (BODY_BYTES, 400), (BODY_BYTES + 1, 413)):
        body = json.dumps({"name": "x" * (length - len(empty))}).encode()
        async with http.post("/api/contacts", data=BytesIO(body), headers=headers) as answer:
            assert answer.status == status
            assert status == 201 or (await answer.json())["requestId"]
    # Files may be larger than other bodies: images have 20 MiB, imports 64 MiB.
    headers["Content-Type"] = "text/csv"
    row = b"Ana," + b"x" * 1_000 + b"\n"
    most = b"name,notes\n" + row * ((FILE_BYTES - 11) // len(row))
    for file in (most[:3_000_000], most):
        async with http.post(
            "/api/import/contacts?dryRun=true", data=BytesIO(file), headers=headers
        ) as answer:
            assert answer.status == 202, await answer.text()


@pytest.mark.parametrize("name", ["nginx", "haproxy"])  # Caddy replaces them by itself
async def test_without_the_lines_that_replace_a_client_can_lie(name: str, tmp_path: Path) -> None:
    lines = lines_that_replace(name)
    assert len(lines) == 4
    with node(tmp_path) as serving, running(name, tmp_path / name, [serving.port], lines) as proxy:
        async with client(proxy) as http:
            async with http.get("/api/contacts", headers=FORGED) as answer:
                assert answer.status == 401
            async with http.get("/console/sign-in", headers=FORGED) as answer:
                assert answer.status == 404
        await until(partial(logged, serving, "/api/contacts", 1))
    assert addresses(serving, "/api/contacts") == [FORGED["X-Forwarded-For"]]


@pytest.mark.parametrize("name", PROXIES)
async def test_a_proxy_that_is_not_trusted_is_named_in_the_log(name: str, tmp_path: Path) -> None:
    other = {"CARTEIRO_SERVER__TRUSTED_PROXIES": "192.0.2.1/32"}
    with (
        node(tmp_path, **other) as serving,
        running(name, tmp_path / name, [serving.port]) as proxy,
    ):
        async with client(proxy) as http, http.get("/api/contacts") as answer:
            assert answer.status == 401
        await until(partial(logged, serving, "/api/contacts", 1))
        warned = [x for x in serving.lines if x["event"] == "forwarded_by_untrusted_peer"]
        assert [line["peer"] for line in warned] == ["127.0.0.1"]
        assert addresses(serving, "/api/contacts") == ["127.0.0.1"]


@pytest.mark.parametrize("name", ["haproxy", "caddy"])  # nginx asks for nothing
async def test_a_node_that_is_slow_to_say_that_it_is_ready_stays_in_use(
    name: str, tmp_path: Path
) -> None:
    checks = asyncio.Queue[None]()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/readyz":
            checks.put_nowait(None)
            await asyncio.sleep(SLOW_CHECK_SECONDS)
        return web.Response(text="here")

    async with receiver(answer=answer) as slow:
        with running(name, tmp_path / name, [int(slow.url.rpartition(":")[2])]) as proxy:
            # The third check follows the answer to the second.
            for _ in range(3):
                await asyncio.wait_for(checks.get(), HANG_SECONDS)
            async with client(proxy) as http, http.get("/api/contacts") as answered:
                assert answered.status == 200, (tmp_path / name / "log").read_text()


class Load:
    """Clients that read and write with short pauses, and every answer that they get."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.answers: Counter[object] = Counter()

    async def some(self) -> None:
        """Return after a number of answers more."""
        wanted = self.answers.total() + BETWEEN
        await until(lambda: self.answers.total() >= wanted)

    async def go_on(self) -> None:
        """Send requests until it is cancelled."""
        while True:
            for method, path, expected in (
                ("GET", "/console/sign-in", 200),
                ("POST", "/api/contacts", 401),
            ):
                try:
                    async with self._http.request(method, path, json={"name": "Bia"}) as answer:
                        await answer.read()
                        told: object = "good" if answer.status == expected else answer.status
                except aiohttp.ClientError as error:
                    told = repr(error)
                self.answers[told] += 1
                await asyncio.sleep(PAUSE_SECONDS)


@pytest.mark.parametrize("name", PROXIES)
async def test_nodes_restart_one_by_one_and_no_request_fails(name: str, tmp_path: Path) -> None:
    """Two nodes, each with a database of its own, since the proxy alone is tested here."""
    ports = [free_port(), free_port()]
    with ExitStack() as stack:

        def start(port: int) -> Serving:
            settings = {"CARTEIRO_SERVER__PORT": str(port)}
            return stack.enter_context(node(tmp_path / str(port), **settings))

        nodes = [start(port) for port in ports]
        proxy = stack.enter_context(running(name, tmp_path / name, ports))
        async with client(proxy) as http:
            load = Load(http)
            tasks = [asyncio.create_task(load.go_on()) for _ in range(CLIENTS)]
            for place, port in enumerate(ports):
                await load.some()
                ended = await asyncio.to_thread(nodes[place].end)
                assert ended == 0, nodes[place].err.read_text()[-3000:]
                await load.some()
                nodes[place] = await asyncio.to_thread(start, port)
                await until(partial(_used, nodes[place]))
            await load.some()
            for task in tasks:
                task.cancel()
    assert load.answers.keys() == {"good"}


def _used(serving: Serving) -> bool:
    """Return whether a node answered more than probes."""
    return len([line for line in serving.lines if line.get("surface") != "probe"]) > 5

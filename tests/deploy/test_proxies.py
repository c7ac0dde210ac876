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
from tests.support.waiting import until

pytestmark = pytest.mark.slow

CLIENT = "127.0.0.2"
"""The client's address; the proxy's is 127.0.0.1, which alone is trusted."""
FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "http",
    "Forwarded": "for=203.0.113.9;host=evil.example;proto=http",
}
BODY_BYTES = 1_048_576
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
async def test_the_gateway_knows_its_client_whatever_the_client_says(
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
                await until(partial(logged, serving, path, 2), 20)
                assert addresses(serving, path) == [CLIENT, CLIENT]
        assert not [line for line in serving.lines if "untrusted" in line["event"]]


@pytest.mark.parametrize("name", ["nginx", "haproxy"])  # Caddy replaces them by itself
async def test_without_the_lines_that_replace_a_client_can_lie(name: str, tmp_path: Path) -> None:
    lines = lines_that_replace(name)
    assert len(lines) == 4
    with (
        node(tmp_path) as serving,
        running(name, tmp_path / name, [serving.port], lines) as proxy,
    ):
        async with client(proxy) as http:
            async with http.get("/api/contacts", headers=FORGED) as answer:
                assert answer.status == 401
            async with http.get("/console/sign-in", headers=FORGED) as answer:
                assert answer.status == 404
        await until(partial(logged, serving, "/api/contacts", 1), 20)
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
        await until(partial(logged, serving, "/api/contacts", 1), 20)
        warned = [x for x in serving.lines if x["event"] == "forwarded_by_untrusted_peer"]
        assert [line["peer"] for line in warned] == ["127.0.0.1"]
        assert addresses(serving, "/api/contacts") == ["127.0.0.1"]


@pytest.mark.parametrize("name", PROXIES)
async def test_metrics_stay_inside_and_bodies_of_every_size_pass(name: str, tmp_path: Path) -> None:
    with node(tmp_path) as serving, running(name, tmp_path / name, [serving.port]) as proxy:
        added = carteiro(
            "user", "add", "ana@example.com", "--name", "Ana", "--password-stdin",
            folder=tmp_path, stdin="a long pass phrase",
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        key = carteiro("key", "add", "ana@example.com", "--name", "test", folder=tmp_path)
        headers = {"X-API-Key": key.stdout.strip(), "Content-Type": "application/json"}
        async with client(proxy) as http:
            for path in ("/metrics", "/%6detrics", "/%6D%65trics", "/metrics?a=b"):
                async with http.get(URL(path, encoded=True)) as answer:
                    assert answer.status == 404, path
            assert addresses(serving, "/metrics") == []
            async with http.post("/api/contacts", json={"name": "Bia"}, headers=headers) as answer:
                assert answer.status == 201
            for length, status in ((BODY_BYTES, 400), (BODY_BYTES + 1, 413)):
                empty = json.dumps({"name": ""})
                body = json.dumps({"name": "x" * (length - len(empty))}).encode()
                async with http.post(
                    "/api/contacts", data=BytesIO(body), headers=headers
                ) as answer:
                    assert answer.status == status
                    assert (await answer.json())["requestId"]
            plain = f"http://127.0.0.1:{proxy.http}/console?x=1"
            async with http.get(plain, allow_redirects=False) as answer:
                assert answer.status == 308
                assert answer.headers["Location"].startswith(f"https://{HOST}")
                assert answer.headers["Location"].endswith("/console?x=1")


async def slow_node(port: int, checks: asyncio.Queue[None]) -> web.AppRunner:
    """A node that answers everything, but /readyz only after a second."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/readyz":
            checks.put_nowait(None)
            await asyncio.sleep(SLOW_CHECK_SECONDS)
        return web.Response(text="here")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    return runner


@pytest.mark.parametrize("name", ["haproxy", "caddy"])  # nginx asks for nothing
async def test_a_node_that_is_slow_to_say_that_it_is_ready_stays_in_use(
    name: str, tmp_path: Path
) -> None:
    port, checks = free_port(), asyncio.Queue[None]()
    runner = await slow_node(port, checks)
    try:
        with running(name, tmp_path / name, [port]) as proxy:
            # The third check follows the answer to the second.
            for _ in range(3):
                await asyncio.wait_for(checks.get(), 30)
            async with client(proxy) as http, http.get("/api/contacts") as answer:
                assert answer.status == 200, (tmp_path / name / "log").read_text()
    finally:
        await runner.cleanup()


class Load:
    """Clients that read and write with short pauses, and every answer that they get."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.answers: Counter[object] = Counter()
        self._going = True

    @property
    def total(self) -> int:
        return sum(self.answers.values())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CLIENTS):
                tasks.create_task(self._one())

    def stop(self) -> None:
        self._going = False

    async def some(self) -> None:
        """Return after a number of answers more."""
        wanted = self.total + BETWEEN
        await until(lambda: self.total >= wanted, 60)

    async def _one(self) -> None:
        while self._going:
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
        async with client(proxy) as http, asyncio.TaskGroup() as tasks:
            load = Load(http)
            tasks.create_task(load.run())
            for place, port in enumerate(ports):
                await load.some()
                ended = await asyncio.to_thread(nodes[place].end)
                assert ended == 0, nodes[place].err.read_text()[-3000:]
                await load.some()
                nodes[place] = await asyncio.to_thread(start, port)
                said = nodes[place]
                await until(lambda: len(said.lines) > len(_probes(said)) + 5, 30)  # noqa: B023
            await load.some()
            load.stop()
    assert load.answers == {"good": load.total}


def _probes(serving: Serving) -> list[object]:
    return [line for line in serving.lines if line.get("surface") == "probe"]

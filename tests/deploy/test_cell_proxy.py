"""HAProxy in front of two cells: which cell gets a request, and maps that change while it runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from gateway.cli.cells.haproxy import Runtime
from outbox.errors import CannotStart
from tests.deploy.proxies import DEPLOY, HOST, Proxy, replaced
from tests.deploy.test_proxies import Here
from tests.support.receiver import Receiver, receiver
from tests.support.requirements import need

SHARED = HOST
"""The hostname that all cells share."""


class CellProxy(Proxy):
    """HAProxy in front of cells, `ports` of one node each."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        super().__init__(folder)
        self.url = f"https://{SHARED}:{self.https}"
        self.socket = folder / "carteiro.sock"
        self.runtime = Runtime(self.socket)
        self.words = [need("haproxy"), "-db", "-f", folder / "haproxy.cfg"]
        for name in ("moved.map", "hosts.map"):
            (folder / name).touch()
        head, _, backend = (DEPLOY / "haproxy-cells.cfg").read_text().rpartition("backend cell-two")
        names = list(ports)
        text = replaced(
            head + "".join(f"backend cell-{name}{backend}\n" for name in names[1:]),
            ("bind :80\n", f"bind 127.0.0.1:{self.http}\n"),
            ("bind :443 ", f"bind 127.0.0.1:{self.https} "),
            ("/etc/ssl/carteiro/", f"{folder}/"),
            ("/run/haproxy/", f"{folder}/"),
            ("/etc/haproxy/moved.map", f"{folder}/moved.map"),
            ("/etc/haproxy/hosts.map", f"{folder}/hosts.map"),
            ("-m str one two }", f"-m str {' '.join(names)} }}"),
        )
        addresses = iter([f"127.0.0.1:{port}" for port in ports.values()])
        text = re.sub(r"127\.0\.0\.1:808[01]", lambda _: next(addresses), text)
        (folder / "haproxy.cfg").write_text(text)


OWNER, MOVED = "019a6e1d4b7f5c2d9e3a1b0f", "019a6e1d4b7f5c2d9e3a1b10"
KEY = "crt_4kYb91Qx_0pL7sJd2"
OLD_KEY = "crt_00000000_0pL7sJd2"
MAPS = {
    "moved.map": {MOVED: "two", "crt_00000000": "two"},
    "hosts.map": {
        "one.example.com": "one", "two.example.com": "two", "shop.example": "two",
        "other.example": "one",
    },
}  # fmt: skip


def cell(name: str) -> AbstractAsyncContextManager[Receiver]:
    """A server that says which cell it is; the proxy knows nothing else of one."""

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/readyz":
            return web.Response()
        return web.json_response({"cell": name, "host": request.headers["X-Forwarded-Host"]})

    return receiver(answer=answer)


@dataclass
class Stack:
    """Two cells behind a proxy, and a client."""

    proxy: CellProxy
    two: AsyncExitStack
    """What ends the second cell."""
    http: aiohttp.ClientSession

    async def cell_of(self, host: str = SHARED, path: str = "/api/me", **headers: str) -> str:
        """Return the cell that answers a request, or the status of a refusal."""
        named = {name.replace("_", "-"): text for name, text in headers.items()} | {"Host": host}
        async with self.http.get(self.proxy.url + path, headers=named, ssl=False) as answer:
            if answer.status != 200:
                return str(answer.status)
            said = await answer.json()
            assert said["host"] == host
            return str(said["cell"])


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with AsyncExitStack() as exits, AsyncExitStack() as second, cell("one") as one:
        two = await second.enter_async_context(cell("two"))
        ports = {"one": int(one.url.rpartition(":")[2]), "two": int(two.url.rpartition(":")[2])}
        proxy = CellProxy(tmp_path, ports)
        for name, entries in MAPS.items():
            (tmp_path / name).write_text(
                "".join(f"{key} {cell}\n" for key, cell in entries.items())
            )
        exits.callback(proxy.kill)
        proxy.start()
        http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(resolver=Here()), cookie_jar=aiohttp.DummyCookieJar()
        )
        await exits.enter_async_context(http)
        yield Stack(proxy, second, http)


def marked(cell: str, owner: str = OWNER, credential: str = KEY) -> str:
    return f"{credential}.{cell}.{owner}"


async def test_each_credential_leads_to_its_cell(stack: Stack) -> None:
    session = "x" * 43
    for name in ("one", "two"):
        text = marked(name)
        assert await stack.cell_of(X_API_Key=text) == name
        assert await stack.cell_of(Authorization=f"Bearer {text}") == name
        assert await stack.cell_of(Authorization=f"bearer {text}") == name
        assert await stack.cell_of(path="/graphql", X_Cart_Session=marked(name)) == name
        cart = f"cartSession={marked(name, credential=session)}; other=1"
        assert await stack.cell_of(path="/graphql", Cookie=cart) == name
        console = f"__Host-carteiro={marked(name, credential=session)}"
        assert await stack.cell_of(path="/console/deals", Cookie=console) == name
        assert await stack.cell_of(path="/console", Cookie=console) == name
        # The cookie of the console says nothing about a request of the API.
        assert await stack.cell_of(path="/consoles", Cookie=console) == "one"
        assert await stack.cell_of(host=f"{name}.example.com") == name
    # The first one decides, and what names no cell leads to the cell of all others.
    both = {"X_API_Key": marked("two"), "Authorization": f"Bearer {marked('one')}"}
    assert await stack.cell_of(**both) == "two"
    for text in (KEY, marked("three"), "a.b.c", "", "..", marked("Two")):
        assert await stack.cell_of(X_API_Key=text) == "one"
    assert await stack.cell_of() == "one"
    assert await stack.cell_of(path="/metrics") == "404"


async def test_who_has_moved_and_the_hostnames_of_stores(stack: Stack) -> None:
    assert await stack.cell_of(X_API_Key=marked("one", MOVED)) == "two"
    assert await stack.cell_of(Authorization=f"Bearer {marked('one', MOVED)}") == "two"
    # A key from before its installation was a cell is known by its visible part.
    assert await stack.cell_of(X_API_Key=OLD_KEY) == "two"
    assert await stack.cell_of(host="shop.example", path="/graphql") == "two"
    assert await stack.cell_of(host="SHOP.example:443", path="/graphql") == "two"
    assert await stack.cell_of(host="nobody.example", path="/graphql") == "one"


async def test_maps_change_while_the_proxy_runs(stack: Stack) -> None:
    text = marked("one")
    assert await stack.cell_of(X_API_Key=text) == "one"
    file = str(stack.proxy.folder / "moved.map")
    many = {f"{number:024x}": "one" for number in range(1_000)}
    await stack.proxy.runtime.replace(file, many | {OWNER: "two"})
    assert await stack.cell_of(X_API_Key=text) == "two"
    # The map is replaced, not added to.
    assert await stack.cell_of(X_API_Key=marked("one", MOVED)) == "one"
    await stack.proxy.runtime.replace(file, {})
    assert await stack.cell_of(X_API_Key=text) == "one"
    with pytest.raises(CannotStart, match="HAProxy has no map /nowhere"):
        await stack.proxy.runtime.replace("/nowhere/moved.map", {})
    with pytest.raises(CannotStart, match="--socket is the `stats socket`"):
        await Runtime(stack.proxy.folder / "nothing").replace(file, {})


async def test_a_cell_that_is_down_refuses_its_own_owners_alone(stack: Stack) -> None:
    await stack.two.aclose()
    async with asyncio.timeout(10):
        while await stack.cell_of(X_API_Key=marked("two")) != "503":
            pass
    for _ in range(20):
        assert await stack.cell_of(X_API_Key=marked("one")) == "one"
        assert await stack.cell_of(X_API_Key=marked("two")) == "503"

"""`carteiro mcp`: each message goes to the server, cancelled ones end, faults are messages."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.mcp import message
from tests.support.process import environment
from tests.support.waiting import HANG_SECONDS


class Fake:
    """A server that tells what it gets, and answers neither a call of `hang` nor its end."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.hanging, self.left = asyncio.Event(), asyncio.Event()

    async def post(self, request: web.Request) -> web.Response:
        sent = await request.json()
        self.calls.append((dict(request.headers), sent))
        if sent["params"].get("name") == "hang":
            self.hanging.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if sent["method"] == "page":
            return web.Response(text="<html>", status=502)
        if sent["method"] == "refused":
            return web.json_response({"jsonrpc": "2.0", "error": {"code": 401, "message": "no"}})
        agreed = {"protocolVersion": "2025-11-25"} if sent["method"] == "initialize" else {}
        return web.json_response({"jsonrpc": "2.0", "id": sent["id"], "result": agreed})


@asynccontextmanager
async def served(fake: Fake) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/mcp", fake.post)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@asynccontextmanager
async def bridge(folder: Path, url: str, key: str) -> AsyncIterator[asyncio.subprocess.Process]:
    settings = {"CARTEIRO_URL": url} | ({"CARTEIRO_API_KEY": key} if key else {})
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "mcp", cwd=folder, env=environment(folder, **settings),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def say(process: asyncio.subprocess.Process, sent: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(sent if isinstance(sent, bytes) else json.dumps(sent).encode() + b"\n")


async def hear(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    heard: dict[str, Any] = json.loads(await process.stdout.readline())
    return heard


async def test_messages_go_to_the_server_and_cancelled_ones_end(tmp_path: Path) -> None:
    fake = Fake()
    async with served(fake) as url, bridge(tmp_path, url, "crt_key") as process:
        about = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "Old"}}
        begin = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": about}
        say(process, begin)
        assert (await hear(process))["result"] == {"protocolVersion": "2025-11-25"}
        say(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        say(process, {"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert await hear(process) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "hang"}}
        say(process, call)
        await asyncio.wait_for(fake.hanging.wait(), HANG_SECONDS)
        say(process, {**call, "params": {"name": "same id"}})
        assert (await hear(process))["error"]["code"] == -32600
        cancel = {"method": "notifications/cancelled", "params": {"requestId": 3}}
        say(process, {"jsonrpc": "2.0", **cancel})
        await asyncio.wait_for(fake.left.wait(), HANG_SECONDS)
        say(process, {"jsonrpc": "2.0", **cancel, "params": {"requestId": "unknown"}})
        faults = {b"{\n": -32700, b"[]\n": -32600, b"x" * 10_485_762 + b"\n": -32600}
        for line, code in faults.items():
            say(process, line)
            assert (await hear(process))["error"]["code"] == code
        for method, code in (("page", -32603), ("refused", 401)):
            say(process, {"jsonrpc": "2.0", "id": 4, "method": method})
            heard = await hear(process)
            assert (heard["id"], heard["error"]["code"]) == (4, code)
        say(process, message("tools/call", name="Ação") | {"id": 5})
        assert (await hear(process))["id"] == 5
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), HANG_SECONDS) == 0
    sent = {one["id"]: (headers, one) for headers, one in fake.calls}
    assert set(sent) == {"a", 2, 3, 4, 5}
    assert all(headers["Authorization"] == "Bearer crt_key" for headers, _ in sent.values())
    assert sent[2][0]["MCP-Protocol-Version"] == "2025-11-25"
    assert sent[2][1]["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] == {"name": "Old"}
    assert sent[5][0]["Mcp-Name"] == "=?base64?QcOnw6Nv?="


async def test_without_a_server_or_a_key_it_says_so(tmp_path: Path) -> None:
    async with bridge(tmp_path, "http://127.0.0.1:9", "crt_key") as process:
        say(process, message("tools/list"))
        error = (await hear(process))["error"]
        assert (error["code"], "Is the server running?" in error["message"]) == (-32603, True)
    async with bridge(tmp_path, "http://127.0.0.1:9", "") as process:
        _, told = await process.communicate()
        assert (process.returncode, b"CARTEIRO_API_KEY" in told) == (1, True)

"""The command `carteiro mcp`: MCP on standard input and output, for desktop programs.

It hands each message to the server at `POST /mcp`, so it needs neither its files nor its database.
"""

import asyncio
import os
import sys
import threading
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec

from gateway.cli.commands import Say
from gateway.cli.server_address import server_of
from gateway.mcp import messages
from gateway.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, META, Message, ProtocolError
from gateway.records.values.strictjson import dumps
from gateway.server.config import Config
from outbox.errors import CannotStart

KEY_VARIABLES = ("CARTEIRO_API_KEY", "CARTEIRO_KEY")
LONGEST_LINE = 10_485_760
LEAVING_SECONDS = 10.0
"""How long calls may take that run when standard input ends."""
TIMEOUT = aiohttp.ClientTimeout(total=120, connect=10)


async def mcp(config: Config, arguments: Namespace, say: Say) -> None:
    """Answer the messages of standard input until it ends."""
    key = next((text for name in KEY_VARIABLES if (text := os.environ.get(name, ""))), "")
    if not key:
        raise CannotStart(
            f"there is no API key in ${KEY_VARIABLES[0]}; `carteiro key add` makes one"
        )
    url = server_of(config, arguments)
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession(headers=headers, timeout=TIMEOUT) as http:
        bridge = Bridge(http, f"{url}/mcp")
        async for line in _lines():
            bridge.take(line)
        await bridge.leave()


class Bridge:
    """The messages of one client that the server answers now."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url
        self._calls: dict[messages.Id, asyncio.Task[None]] = {}
        # Of a client of an earlier revision, which says both only once.
        self._client: Any = None
        self._revision: str | None = None

    def take(self, line: bytes) -> None:
        """Begin to answer the message of a line, or cancel what it cancels."""
        try:
            if len(line) > LONGEST_LINE:
                text = f"A message must not exceed {LONGEST_LINE} bytes."
                raise ProtocolError(INVALID_REQUEST, text)
            message = messages.parse(line)
        except ProtocolError as error:
            _write(messages.error(error))
            return
        if message.id is None:
            if message.method == "notifications/cancelled":
                call = self._calls.get(message.params.get("requestId", ""))
                if call is not None:
                    call.cancel()
            return
        if message.id in self._calls:
            text = "A request with this id has no response yet."
            _write(messages.error(ProtocolError(INVALID_REQUEST, text, of=message.id)))
            return
        call = asyncio.create_task(self._answer(message, message.id))
        self._calls[message.id] = call
        call.add_done_callback(lambda _: self._calls.pop(message.id or "", None))

    async def leave(self) -> None:
        """Wait for the calls that run, and cancel those that take too long."""
        if self._calls:
            _, late = await asyncio.wait(self._calls.values(), timeout=LEAVING_SECONDS)
            for call in late:
                call.cancel()

    async def _answer(self, message: Message, of: messages.Id) -> None:
        if message.method == "initialize":
            self._client = message.params.get("clientInfo")
        try:
            body = await self._post(message)
        except (aiohttp.ClientError, TimeoutError) as error:
            told = str(error) or type(error).__name__
            text = f"Cannot reach {self._url}: {told}. Is the server running?"
            body = messages.error(ProtocolError(INTERNAL_ERROR, text))
        if message.method == "initialize" and isinstance(body.get("result"), dict):
            self._revision = body["result"].get("protocolVersion")
        _write({**body, "id": of})

    async def _post(self, message: Message) -> dict[str, Any]:
        params = dict(message.params)
        meta = dict(message.meta)
        headers = {"Mcp-Method": message.method, "Content-Type": "application/json"}
        revision = meta.get(f"{META}protocolVersion", self._revision)
        if isinstance(revision, str) and message.method != "initialize":
            headers["MCP-Protocol-Version"] = messages.encoded(revision)
        if isinstance(params.get("name"), str):
            headers["Mcp-Name"] = messages.encoded(params["name"])
        if self._client is not None:
            params["_meta"] = {f"{META}clientInfo": self._client} | meta
        sent = {"jsonrpc": "2.0", "id": message.id, "method": message.method, "params": params}
        async with self._http.post(
            self._url, data=dumps(sent).encode(), headers=headers, allow_redirects=False
        ) as response:
            return _message_of(response.status, await response.read())


def _message_of(status: int, body: bytes) -> dict[str, Any]:
    """Return the response of the server, or an error when something else has answered."""
    try:
        message = msgspec.json.decode(body)
    except msgspec.DecodeError:
        message = None
    if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
        return message
    text = f"The server answered {status} and no message; is CARTEIRO_URL the address of Carteiro?"
    return messages.error(ProtocolError(INTERNAL_ERROR, text))


async def _lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input, which may be a pipe, a file or a terminal."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes]()

    def read() -> None:
        source = sys.stdin.buffer
        while line := source.readline(LONGEST_LINE + 2):
            rest = line
            while not rest.endswith(b"\n") and (rest := source.readline(LONGEST_LINE)):
                pass
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, b"")

    # Not one of the loop's threads, for whose end a signal would wait.
    threading.Thread(target=read, daemon=True, name="standard-input").start()
    while line := await lines.get():
        if line.strip():
            yield line


def _write(message: Mapping[str, Any]) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()

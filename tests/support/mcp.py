"""A client of the MCP door that sends what the protocol asks for, or something else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.mcp.messages import META, MODERN
from tests.support.rest import Person, Reply

PATH = "/mcp"
ABOUT: Mapping[str, Any] = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientInfo": {"name": "Tester", "version": "1"},
    f"{META}clientCapabilities": {},
}


def message(method: str, meta: Mapping[str, Any] = ABOUT, **params: Any) -> dict[str, Any]:
    """Return a request of the newest revision."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


def headers(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that mirror a request."""
    name = sent["params"].get("name")
    mirrored = {"MCP_Protocol_Version": MODERN, "Mcp_Method": sent["method"]}
    return mirrored | ({"Mcp_Name": name} if isinstance(name, str) else {})


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned: its content, or its error."""

    content: dict[str, Any]
    error: dict[str, Any]

    @property
    def code(self) -> str:
        """The code of the refusal, or `ok`."""
        return str(self.error.get("code", "ok"))


async def post(who: Person, method: str, **params: Any) -> Reply:
    """Send a request of the newest revision."""
    sent = message(method, **params)
    return await who.post(PATH, sent, **headers(sent))


async def call(who: Person, tool: str, meta: Mapping[str, Any] = ABOUT, **given: Any) -> Result:
    """Call a tool."""
    reply = await post(who, "tools/call", name=tool, arguments=given, meta=meta)
    assert reply.status == 200, reply.text
    result = reply.body["result"]
    [text] = [json.loads(part["text"]) for part in result["content"]]
    if result["isError"]:
        return Result({}, text)
    assert result["structuredContent"] == text
    return Result(text, {})

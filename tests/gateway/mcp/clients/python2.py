"""Calls tools by the official SDK mcp 2.x: URL or `stdio`, steps on standard input."""

import json
import os
import sys

import anyio
import httpx2
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main(where: str, mode: str) -> None:
    key, steps = os.environ["KEY"], json.load(sys.stdin)
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"})
    if where == "stdio":
        command, *words = json.loads(os.environ["COMMAND"])
        env = {
            name: os.environ[name] for name in ("CARTEIRO_API_KEY", "CARTEIRO_URL", "PYTHONPATH")
        }
        transport = stdio_client(StdioServerParameters(command=command, args=words, env=env))
    else:
        transport = streamable_http_client(where, http_client=http)
    found: dict[str, object] = {}
    async with http, Client(transport, mode=mode) as client:
        found["revision"] = client.protocol_version
        found["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "search", {"query": "a"})
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        results = []
        for tool, arguments in steps:
            result = await client.call_tool(tool, arguments)
            results.append([result.is_error, json.loads(result.content[0].text)])
        found["results"] = results
        try:
            await client.call_tool("serch", {})
        except MCPError as error:
            found["unknown"] = str(error)
    print(json.dumps(found))


anyio.run(main, *sys.argv[1:])

"""Calls tools by the official SDK mcp 1.x: URL or `stdio`, steps on standard input."""

import json
import os
import sys

import anyio
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(where: str, mode: str) -> None:
    key, steps = os.environ["KEY"], json.load(sys.stdin)
    if where == "stdio":
        command, *words = json.loads(os.environ["COMMAND"])
        env = {
            name: os.environ[name] for name in ("CARTEIRO_API_KEY", "CARTEIRO_URL", "PYTHONPATH")
        }
        transport = stdio_client(StdioServerParameters(command=command, args=words, env=env))
    else:
        transport = streamablehttp_client(where, headers={"Authorization": f"Bearer {key}"})
    found: dict[str, object] = {}
    async with transport as streams, ClientSession(*streams[:2]) as session:
        found["revision"] = (await session.initialize()).protocolVersion
        found["tools"] = [tool.name for tool in (await session.list_tools()).tools]
        async with anyio.create_task_group() as group:
            group.start_soon(session.call_tool, "search", {"query": "a"})
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        results = []
        for tool, arguments in steps:
            result = await session.call_tool(tool, arguments)
            results.append([result.isError, json.loads(result.content[0].text)])
        found["results"] = results
        try:
            await session.call_tool("serch", {})
        except McpError as error:
            found["unknown"] = str(error)
    print(json.dumps(found))


anyio.run(main, *sys.argv[1:])

"""Official clients: the Python SDK 2.x and 1.x and the TypeScript SDK, by HTTP and stdio."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.mcp.messages import EARLIER, MODERN
from gateway.mcp.methods import tools
from tests.architecture.tree import ROOT
from tests.gateway.mcp.test_tools import house_of
from tests.support.generators import run
from tests.support.node import FOLDER, package
from tests.support.requirements import need
from tests.support.rest import Person, RestApi

pytestmark = pytest.mark.proof
PROGRAMS = Path(__file__).parent / "clients"
SDKS = ROOT / ".venv"
"""Has an environment for each version of the Python SDK: mcp2 and mcp1."""
CLIENTS = {
    "python2": (MODERN, "auto"), "python2 legacy": (EARLIER[0], "legacy"),
    "python1": (EARLIER[0], "legacy"), "typescript": (MODERN, "auto"),
    "typescript legacy": (EARLIER[0], "legacy"),
}  # fmt: skip


def words_of(client: str, folder: Path) -> list[str]:
    """Return the command of a client, or skip and name what it needs."""
    name = client.split()[0]
    if name == "typescript":
        package("@modelcontextprotocol/client")
        program = folder / "client.mjs"
        program.write_text((PROGRAMS / "typescript.mjs").read_text())
        (folder / "node_modules").symlink_to(FOLDER / "node_modules")
        return [need("node"), str(program)]
    python = SDKS / name.replace("python", "mcp") / "bin" / "python"
    if not python.exists():
        pytest.skip(f"needs {python.parent}: make proof makes it")
    return [str(python), str(PROGRAMS / f"{name}.py")]


@pytest.mark.parametrize("where", ["http", "stdio"])
@pytest.mark.parametrize("client", CLIENTS)
async def test_an_official_client_uses_each_tool(
    api: RestApi, ana: Person, client: str, where: str, tmp_path: Path
) -> None:
    words = words_of(client, tmp_path)
    revision, mode = CLIENTS[client]
    house = await house_of(api, ana, 0)
    new: dict[str, Any] = {"type": "contacts", "record": {"name": "Olá 🙂"}}
    given = {
        name: house.given(name, "tasks" if name == "act" else "contacts") for name in tools()
    } | {"create": new, "update": house.given("update", "contacts") | {"record": {"name": "B"}}}
    steps: list[tuple[str, Any]] = [*given.items(), ("create", {**new, "record": {"nome": "x"}})]
    settings = {
        "KEY": ana.headers["X-API-Key"], "CARTEIRO_API_KEY": ana.headers["X-API-Key"],
        "CARTEIRO_URL": api.site.url, "PYTHONPATH": str(ROOT),
        "COMMAND": json.dumps([sys.executable, "-m", "gateway", "mcp"]),
    }  # fmt: skip
    place = "stdio" if where == "stdio" else f"{api.site.url}/mcp"
    text = json.dumps(steps)
    printed = await asyncio.to_thread(run, [*words, place, mode], tmp_path, text, **settings)
    found = json.loads(printed)
    assert found["revision"] == revision
    assert found["tools"] == list(tools())
    *results, (failed, error) = found["results"]
    assert [step for step, (is_error, _) in zip(steps, results, strict=False) if is_error] == []
    by_tool = {tool: content for (tool, _), (_, content) in zip(steps, results, strict=False)}
    assert by_tool["create"]["record"]["name"] == "Olá 🙂"
    assert failed
    assert ("name" in error["error"], error["details"][1]["nearest"]) == (True, "name")
    assert "There is no tool 'serch'" in found["unknown"]
    entries = (await ana.get("/api/audit?limit=100")).body["data"]
    named = {one["client"] for one in entries if one.get("via") == "mcp"}
    # Of earlier revisions the door knows only the User-Agent, the command has the name.
    assert named
    assert "unnamed" not in named

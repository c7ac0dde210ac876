"""Run `promtool check metrics` on the page of a server that has written and delivered."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import urllib.request
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.staging import Stage
from tests.benchmarks.write_path import CONTACT
from tests.proof.outcome import Outcome
from tests.support.requirements import SEARCH_PATH, TOOLS

WRITES = 20


async def exposition(seed: int) -> Outcome:
    """Check the metrics of a gateway after some writes, each with its delivery."""
    outcome = Outcome()
    page = await _page(outcome)
    path = shutil.which("promtool", path=SEARCH_PATH)
    if path is None:
        outcome.reasons.append(f"promtool is missing: {TOOLS['promtool'].install}")
        return outcome
    process = await asyncio.create_subprocess_exec(
        *(path, "check", "metrics"), stdin=PIPE, stdout=PIPE, stderr=STDOUT
    )
    said, _ = await process.communicate(page.encode())
    outcome.figures |= {
        "families": page.count("\n# TYPE "),
        "samples": sum(1 for line in page.splitlines() if line and not line.startswith("#")),
        "complaints": len(said.decode().splitlines()),
    }
    outcome.need(process.returncode == 0, f"promtool: {said.decode().strip()[-1000:]}")
    return outcome


async def _page(outcome: Outcome) -> str:
    with tempfile.TemporaryDirectory(prefix="carteiro-proof-") as home:
        folder = Path(home)
        log = folder / "children.log"
        with child("tests.benchmarks.receiver", log=log) as receiver:
            port = receiver.json()["port"]
            stage = Stage(f"sqlite:///{folder}/carteiro.db", folder)
            await stage.prepare()
            [person] = await stage.people([[f"http://127.0.0.1:{port}/hook"]])
            with product(stage.environment(port), folder) as running:
                spec = {
                    "port": running.port,
                    "connections": 1,
                    "seconds": 1,
                    "per_second": WRITES,
                    "expect": 201,
                    "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=person.key)],
                }
                made = answer_of("tests.benchmarks.load", log, spec)["count"]
                delivered = 'webhook_deliveries_finished_total{result="delivered"}'
                for _ in range(100):
                    page = await asyncio.to_thread(_read, running.port)
                    if f"{delivered} {made:.1f}" in page:
                        break
                    await asyncio.sleep(0.1)
                else:
                    outcome.reasons.append(f"/metrics never counted {made} deliveries")
    outcome.figures["deliveries"] = made
    return page


def _read(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        page: str = answer.read().decode()
        return page

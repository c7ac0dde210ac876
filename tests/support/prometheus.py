"""A real Prometheus that scrapes nodes of a test and evaluates our rules."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.architecture.tree import ROOT
from tests.support.process import free_port
from tests.support.requirements import need
from tests.support.waiting import until

RULES = ROOT / "dashboards"


class QueryFailed(Exception):
    """Prometheus refused a query; the text is its reason."""


class Prometheus:
    """The HTTP API of a running server."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def get(self, path: str, params: Sequence[tuple[str, str]] = ()) -> Any:
        """Return `data` of a response. Raise QueryFailed."""
        async with self._http.get(f"/api/v1/{path}", params=list(params)) as response:
            answer = await response.json()
        if answer["status"] != "success":
            raise QueryFailed(answer["error"])
        return answer["data"]

    async def instant(self, expr: str, at: float) -> list[dict[str, Any]]:
        """Return the samples of an expression at a time."""
        found = await self.get("query", [("query", expr), ("time", str(at))])
        if found["resultType"] == "scalar":
            return [{"metric": {}, "value": found["result"]}]
        samples: list[dict[str, Any]] = found["result"]
        return samples

    async def over(self, expr: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Return the series of an expression."""
        span = [("start", str(start)), ("end", str(end)), ("step", str(step))]
        found = await self.get("query_range", [("query", expr), *span])
        series: list[dict[str, Any]] = found["result"]
        return series

    async def values(self, selector: str, label: str) -> list[str]:
        """Return the values of a label."""
        found: list[str] = await self.get(f"label/{label}/values", [("match[]", selector)])
        return found


async def until_ready(http: aiohttp.ClientSession) -> None:
    """Wait until a server of Prometheus, or an Alertmanager, is ready."""

    async def ready() -> bool:
        with suppress(aiohttp.ClientError):
            async with http.get("/-/ready") as response:
                return response.status == 200
        return False

    await until(ready)


JOB = "shop-gateway"
"""Nothing may depend on the name of the job in our example."""
STRANGER = "stranger"


def configuration(
    folder: Path, targets: Sequence[str], seconds: int, stranger: str | None = None
) -> Path:
    """Write our example for `targets`, with every interval shortened to `seconds`; return its path.

    The rules themselves stay as they are. `stranger` is the address of another program.
    """
    config = yaml.safe_load((RULES / "prometheus.yml").read_text())
    interval = f"{seconds}s"
    config["global"] |= {"scrape_interval": interval, "evaluation_interval": interval}
    config["global"]["scrape_timeout"] = interval
    [job] = config["scrape_configs"]
    job |= {"job_name": JOB, "static_configs": [{"targets": list(targets)}]}
    if stranger is not None:
        other = {"job_name": STRANGER, "static_configs": [{"targets": [stranger]}]}
        config["scrape_configs"].append(other)
    for name in config["rule_files"]:
        rules = yaml.safe_load((RULES / name).read_text())
        for group in rules["groups"]:
            group["interval"] = interval
        (folder / name).write_text(yaml.safe_dump(rules))
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config))
    return path


@asynccontextmanager
async def prometheus(config: Path) -> AsyncIterator[Prometheus]:
    """Run Prometheus with a configuration file, beside which it keeps its data."""
    program, port = need("prometheus"), free_port()
    words = {
        "config.file": str(config), "storage.tsdb.path": str(config.parent / "tsdb"),
        "web.listen-address": f"127.0.0.1:{port}", "log.level": "warn",
    }  # fmt: skip
    with (config.parent / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *(f"--{name}={value}" for name, value in words.items())],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:
                await until_ready(http)
                yield Prometheus(http)
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)

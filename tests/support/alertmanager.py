"""A real Alertmanager with our example of a configuration."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from tests.architecture.tree import ROOT
from tests.support.process import free_port
from tests.support.requirements import need

CONFIG = ROOT / "dashboards" / "alertmanager.yml"
READY_SECONDS = 30.0


class Alertmanager:
    """The HTTP API of a running server at `address`, which is host and port."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self._http = http
        self.address = address

    async def told(self) -> dict[str, str]:
        """Return the alerts of which people are told, with the severity of each."""
        async with self._http.get("/api/v2/alerts?inhibited=false") as response:
            found = [alert["labels"] for alert in await response.json()]
        return {labels["alertname"]: labels["severity"] for labels in found}

    async def until_ready(self) -> None:
        """Wait until it answers."""
        async with asyncio.timeout(READY_SECONDS):
            while True:
                try:
                    async with self._http.get("/-/ready") as response:
                        if response.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.05)


@asynccontextmanager
async def alertmanager(folder: Path) -> AsyncIterator[Alertmanager]:
    """Run Alertmanager, which keeps its data in `folder`."""
    address = f"127.0.0.1:{free_port()}"
    words = {
        "config.file": str(CONFIG), "storage.path": str(folder / "alertmanager"),
        "web.listen-address": address, "cluster.listen-address": "", "log.level": "warn",
    }  # fmt: skip
    with (folder / "alertmanager.log").open("wb") as log:
        process = subprocess.Popen(
            [need("alertmanager"), *(f"--{name}={value}" for name, value in words.items())],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            async with aiohttp.ClientSession(f"http://{address}") as http:
                server = Alertmanager(http, address)
                await server.until_ready()
                yield server
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 20)

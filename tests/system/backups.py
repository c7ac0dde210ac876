"""Commands that run beside a server, and what their tests share."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.support.process import environment
from tests.support.recipients import Receipt
from tests.support.tenants import Tenants

DELIVERIES = "select event_id, webhook_id, state from deliveries"


@dataclass(frozen=True)
class Ended:
    """A command that ran to its end."""

    status: int
    err: str
    seconds: float


async def carteiro(*words: str, url: str, folder: Path, broken: str = "") -> Ended:
    """Run one command in its own process."""
    began = time.monotonic()
    process = await start(*words, url=url, folder=folder, broken=broken)
    async with asyncio.timeout(300):
        _, err = await process.communicate()
    seconds = round(time.monotonic() - began, 2)
    return Ended(process.returncode or 0, err.decode(), seconds)


async def start(
    *words: str, url: str, folder: Path, broken: str = ""
) -> asyncio.subprocess.Process:
    """Start one command."""
    module = "tests.system.broken_serve" if broken else "gateway"
    settings = {
        "CARTEIRO_DATABASE__URL": url, "BROKEN": broken,
        "CARTEIRO_SECRETS__KEY_FILE": str(folder / "carteiro.key"),
    }  # fmt: skip
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *words, cwd=folder, stdout=PIPE, stderr=PIPE,
        env=environment(folder, **settings),
    )  # fmt: skip


def arrivals(got: list[Receipt], tenants: Tenants) -> Counter[tuple[str, str]]:
    """Count requests by event and webhook."""
    return Counter((receipt.event_id, tenants.paths[receipt.path]) for receipt in got)

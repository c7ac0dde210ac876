"""The honest owner's client, in a process of its own, which no other client delays.

`python -m tests.system.attacks.honest_client ADDRESS PID KEY CLIENT RATE`: a line when it begins,
requests until standard input ends, then what they met as JSON. Of a request's time, the wait of the
client and of the server's event loop for a processor is the machine's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter, defaultdict
from itertools import count

import aiohttp

from tests.support.product import queued_seconds

PATHS = ("/api/me", "/api/contacts", "POST", "/api/contacts?limit=100")


async def main(address: str, pid: int, key: str, client: str, rate: float) -> None:
    """Send `rate` requests a second, whether or not the one before was answered."""
    took: dict[str, list[float]] = defaultdict(list)
    wrong, made, sent = Counter[str](), Counter[str](), set[asyncio.Task[None]]()

    def waited() -> tuple[float, float]:
        return queued_seconds(pid), queued_seconds(os.getpid())

    async def once(http: aiohttp.ClientSession, path: str) -> None:
        kind, body = ("write", {"name": "Maria"}) if path == "POST" else ("read", None)
        began, queued = time.monotonic(), waited()
        try:
            async with http.request(
                "GET" if body is None else "POST", "/api/contacts" if body else path, json=body
            ) as answer:
                await answer.read()
                if answer.status not in (200, 201):
                    wrong[f"{path} got {answer.status}"] += 1
                made[kind] += answer.status == 201
        except (aiohttp.ClientError, TimeoutError) as error:
            wrong[f"{path} got {type(error).__name__}"] += 1
        lost = max(now - then for now, then in zip(waited(), queued, strict=True))
        took[kind].append(max(0.0, time.monotonic() - began - lost))

    async def work(http: aiohttp.ClientSession) -> None:
        began = time.monotonic()
        for number in count():
            await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            sent.add(task := asyncio.create_task(once(http, PATHS[number % len(PATHS)])))
            task.add_done_callback(sent.discard)

    headers = {"X-API-Key": key, "X-Forwarded-For": client, "Connection": "close"}
    async with aiohttp.ClientSession(
        address, headers=headers, timeout=aiohttp.ClientTimeout(90)
    ) as http:
        working = asyncio.create_task(work(http))
        print(flush=True)
        await asyncio.to_thread(sys.stdin.read)
        working.cancel()
        await asyncio.gather(working, *sent, return_exceptions=True)
    print(json.dumps({"took": took, "wrong": wrong, "made": made["write"]}))


if __name__ == "__main__":
    _, address, pid, key, client, rate = sys.argv
    asyncio.run(main(address, int(pid), key, client, float(rate)))

"""The baseline of the send path: aiohttp's client on uvloop, which only signs and posts."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

Event = tuple[str, str, str, str]
"""Id, body, URL, secret."""


async def send_all(session: ClientSession, events: Iterator[Event]) -> None:
    """Post one event after the other until none is left."""
    for event_id, text, url, secret in events:
        body = text.encode()
        now = int(time.time())
        plain = hmac.digest(secret.encode(), body, "sha256").hex()
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = f"{event_id}.{now}.".encode() + body
        trio = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
        headers = {
            "Content-Type": "application/json",
            "X-Webhook-Event": "contact.created",
            "X-Webhook-Timestamp": str(now),
            "X-Webhook-Signature": f"sha256={plain}",
            "User-Agent": "Carteiro-Webhook/1.0",
            "X-Webhook-Id": event_id,
            "X-Webhook-Attempt": "1",
            "X-Webhook-Record-Version": "1",
            "webhook-id": event_id,
            "webhook-timestamp": str(now),
            "webhook-signature": f"v1,{trio}",
        }
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
            await answer.read()
            assert answer.status == 200


async def main(spec: dict[str, Any]) -> None:
    events: list[Event] = [tuple(row) for row in json.loads(Path(spec["file"]).read_text())]
    session = ClientSession(
        connector=TCPConnector(limit=0),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=15),
        auto_decompress=False,
    )
    async with session:
        shared = iter(events)
        began, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(send_all(session, shared) for _ in range(spec["concurrency"])))
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"seconds": seconds, "cpu": cpu}), flush=True)


if __name__ == "__main__":
    uvloop.run(main(json.load(sys.stdin)))

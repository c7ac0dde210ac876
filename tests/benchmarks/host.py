"""A program that embeds the engine, in a separate process: it writes events and drains them.

Each line on its port (`owner event`) becomes one event in its own transaction.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvloop

from gateway.cli.serve import tune_interpreter
from gateway.server.telemetry import logs
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.events import enqueue
from outbox.ids import Ids
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks.key_files import read_key_file
from outbox.worker import Worker, WorkerSettings

RULES = Rules(allow_http=True, allow=(parse_place("127.0.0.0/8"),))
DATA = {
    "name": "Maria da Conceição",
    "email": "maria@example.com",
    "phone": "+55 11 98888-7777",
    "createdAt": "2026-11-21T09:05:00.000Z",
}


async def write(tx: Tx, owner: str, name: str) -> None:
    """Write one event."""
    record = tx.new_id()
    data = {"id": record, **DATA}
    enqueue(tx, owner_id=owner, name=name, record_id=record, record_version=1, data=data)


async def main(spec: dict[str, Any]) -> None:
    clock, ids = SystemClock(), Ids()
    logs.configure("error", clock=clock, node="host", version="0")
    tune_interpreter()
    db = await database.open(spec["url"], clock=clock, ids=ids, serving=True)
    ring = read_key_file(spec["key_file"], ids)
    sender = Sender(Guard(RULES, clock), clock)
    worker = Worker(db, ring, sender, clock=clock, ids=ids, settings=WorkerSettings())
    running = asyncio.create_task(worker.run())
    writes: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        async for line in reader:
            owner, name = line.decode().split()
            task = asyncio.create_task(db.write(write, owner, name))
            writes.add(task)
            task.add_done_callback(writes.discard)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await running


if __name__ == "__main__":
    uvloop.run(main(json.load(sys.stdin)))

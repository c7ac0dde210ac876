"""Committed events drained to a receiver, against a bare loop that signs and posts the same."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from gateway.server.config import Delivery
from outbox.database.transaction import Row, Tx
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Person, Stage, commit_events

OWNERS = 20
OF_BARE = 0.85


async def send_path(size: Size) -> Verdict:
    """Measure deliveries per second from the drain's start to its last settle, SQLite FULL."""
    verdict = Verdict("send_path")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
        folder = Path(name)
        log = folder / "children.log"
        with child("tests.benchmarks.receiver", log=log) as receiver:
            port = receiver.json()["port"]
            url = f"http://127.0.0.1:{port}/hook"
            full = Stage(f"sqlite:///{folder}/full.db", folder)
            await full.prepare()
            people = await full.people([[url]] * OWNERS)
            async with full.opened() as db:
                await commit_events(db, [person.id for person in people], size.events)
            bare = {
                "file": await _written_out(full, people, url),
                "concurrency": Delivery().slots,
            }
            rates: dict[str, list[float]] = {"drain": [], "bare": []}
            cpu: dict[str, list[float]] = {"drain": [], "bare": []}
            for run in range(size.runs):
                stage = Stage(f"sqlite:///{folder}/run{run}.db", folder)
                shutil.copyfile(folder / "full.db", folder / f"run{run}.db")
                spec = {"environment": stage.environment(port), "count": size.events}
                for what, done in (
                    ("bare", answer_of("tests.benchmarks.bare_sender", log, bare)),
                    ("drain", answer_of("tests.benchmarks.drain", log, spec)),
                ):
                    rates[what].append(size.events / done["seconds"])
                    cpu[what].append(done["cpu"] / size.events * 1e6)
    verdict.figures["events"] = size.events
    verdict.figures |= {f"{what}_per_s": round(median(found)) for what, found in rates.items()}
    verdict.figures |= {f"{what}_cpu_us": rounded(median(found)) for what, found in cpu.items()}
    verdict.at_least("of_bare", median(rates["drain"]) / median(rates["bare"]), OF_BARE)
    return verdict


async def _written_out(stage: Stage, people: list[Person], url: str) -> str:
    """Write a file for the baseline: each event with its URL and its secret."""
    secrets = {person.id: person.secrets[0] for person in people}
    async with stage.opened() as db:
        rows = await db.read(_events)
    events = [
        (row["id"], bytes(row["body"]).decode(), url, secrets[row["owner_id"]]) for row in rows
    ]
    file = stage.folder / "events.json"
    file.write_text(json.dumps(events))
    return str(file)


async def _events(tx: Tx) -> list[Row]:
    return await tx.all("select id, owner_id, body from events order by pos")

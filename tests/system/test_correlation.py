"""One search finds a request, its event and each attempt, also when the process is killed.

Writes run while the process is killed and started again. For each acknowledged write, the lines
with its request id alone must tell the request, the event, and each request that a receiver got
for it with the span that the receiver saw.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES, sizes
from tests.support.ledger import EVENTS, query, until_drained
from tests.support.load import Load
from tests.support.otlp import Exported, trace_collector
from tests.support.product import Product
from tests.support.recipients import Receipt, recipients
from tests.support.tenants import settle_in

RECEIVERS = 10
OWNERS = 10
RATE = 50.0
WRITES = (20, 80)
LATENCY = (0.0, 0.08)
LEASE_SECONDS = 30.0
TOLD = {"attempt", "attempt_unrecorded"}

Line = Mapping[str, Any]


async def run_correlation(
    kills: int, engine: Engine, seed: int, *, module: str = "gateway"
) -> dict[str, Any]:
    """Kill the product `kills` times under load, end it in order, and search its log."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-search-") as home:
        folder = Path(home)
        async with (
            empty_database(engine, folder) as url,
            recipients(RECEIVERS, seed=seed, latency=LATENCY) as there,
            trace_collector() as collector,
        ):
            tenants = await settle_in(url, folder, there.ports, owners=OWNERS)
            product = Product(
                folder, url, tenants.key_file, module=module,
                environment={"CARTEIRO_TRACING__ENDPOINT": collector.url},
            )  # fmt: skip
            load = Load(tenants, seed)
            try:
                await product.start()
                for _ in range(kills):
                    there.behave(status=503)
                    async with load.writing(product.address, rate=RATE):
                        await load.until_sent(load.count + dice.randint(*WRITES))
                        there.behave(status=200)
                        await load.until_sent(load.count + dice.randint(*WRITES))
                        product.kill()
                    await product.ended()
                    await product.start()
                async with load.writing(product.address, rate=RATE):
                    await load.until_sent(load.count + WRITES[0])
                left = await until_drained(url, LEASE_SECONDS + 15.0)
                status = await product.stop()
                events = {event: request for event, _, _, request in await query(url, EVENTS)}
                return judged(load, events, there.got, product.log, collector.spans) | {
                    "kills": kills, "unfinished": left, "exit": status,
                }  # fmt: skip
            finally:
                await product.close()


def judged(
    load: Load,
    events: Mapping[str, str],
    got: Sequence[Receipt],
    log: Path,
    spans: Sequence[Exported],
) -> dict[str, Any]:
    """Search the log for each acknowledged write; `events` has request ids by event id."""
    text = log.read_bytes()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith(b"{")]
    found: dict[str, list[Line]] = {}
    for line in lines:
        if "request_id" in line:
            found.setdefault(line["request_id"], []).append(line)
    received: dict[str, list[Receipt]] = {}
    for receipt in got:
        received.setdefault(events[receipt.event_id], []).append(receipt)
    exported = {span.span_id: span for span in spans}
    figures = dict.fromkeys(
        ("writes", "requests_received", "rescued_lines", "without_event_line", "attempt_spans"), 0
    )
    missing: dict[str, list[str]] = {}

    def miss(what: str, request_id: str) -> None:
        missing.setdefault(what, []).append(request_id)

    for request_id in load.acked:
        figures["writes"] += 1
        own = found.get(request_id, [])
        api = [line for line in own if line["event"] == "request"]
        if len(api) != 1:
            miss("request line", request_id)
            continue
        traces = {line["trace_id"] for line in own}
        if traces != {api[0]["trace_id"]}:
            miss("one trace", request_id)
        named = {line["event_id"] for line in own if "event_id" in line}
        figures["without_event_line"] += not any(line["event"] == "fanned_out" for line in own)
        attempts = [line for line in own if line["event"] in TOLD]
        figures["rescued_lines"] += sum(line["event"] == "attempt_unrecorded" for line in own)
        for receipt in received.get(request_id, ()):
            figures["requests_received"] += 1
            _, trace_id, span_id, _ = receipt.traceparent.split("-")
            if receipt.event_id not in named:
                miss("the id that the receiver saw", request_id)
            if trace_id not in traces:
                miss("the trace that the receiver saw", request_id)
            told = [line for line in attempts if line.get("span_id") == span_id]
            if not told or {line["attempt"] for line in told} != {receipt.attempt}:
                miss("line of an attempt", request_id)
            # One line when it ends; a second one only when its process was killed.
            if len([line for line in told if line["event"] == "attempt"]) > 1:
                miss("single line of an attempt", request_id)
            span = exported.get(span_id)
            if span is not None:
                figures["attempt_spans"] += 1
                if (span.trace_id, span.parent_id) != (trace_id, api[0]["span_id"]):
                    miss("parent of an attempt's span", request_id)
    figures["lines"] = len(lines)
    figures["spans"] = len(spans)
    return figures | {
        "pass": not missing and figures["writes"] > 0 and figures["requests_received"] > 0,
        "findings": {what: (len(ids), ids[:3]) for what, ids in missing.items()},
    }


SEED = 2_026


@sizes("kills", small=1, large=10)
@ENGINES
async def test_one_search_finds_everything_across_kills(engine: Engine, kills: int) -> None:
    told = await run_correlation(kills, engine, SEED)
    assert told["pass"], told
    assert told["unfinished"] == 0
    assert told["exit"] == 0
    assert told["attempt_spans"] > 0


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_process_that_forgets_killed_attempts_is_seen() -> None:
    told = await run_correlation(2, "sqlite", SEED, module="tests.system.forgetful_serve")
    assert "line of an attempt" in told["findings"], told

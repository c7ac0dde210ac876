"""One search finds a request, its event and each attempt, also when the process is killed.

Writes run while the process is killed and started again. For each acknowledged write, the lines
with its request id alone must tell the request, the event, and each request that a receiver got
for it with the span that the receiver saw.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp

from tests.gateway.server.telemetry.test_spans import Exported, trace_collector
from tests.support.deployed import deployed
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import EVENTS, query, until_drained
from tests.support.load import Load
from tests.support.recipients import Receipt

SEED = 2_026
WRITES = (20, 80)
LEASE_SECONDS = 30.0
TOLD = {"attempt", "attempt_unrecorded"}

Line = Mapping[str, Any]


async def run_correlation(kills: int, engine: Engine, broken: str = "") -> dict[str, Any]:
    """Kill the product `kills` times under load, end it in order, and search its log."""
    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(trace_collector())
        site = await stack.enter_async_context(
            deployed(
                engine, SEED, owners=10, latency=(0.0, 0.08), broken=broken,
                settings={"CARTEIRO_TRACING__ENDPOINT": collector.url},
            )
        )  # fmt: skip
        for _ in range(kills):
            site.there.behave(status=503)
            async with site.writing():
                await site.more(site.dice.randint(*WRITES))
                site.there.behave(status=200)
                await site.more(site.dice.randint(*WRITES))
                site.product.kill()
            await site.product.ended()
            await site.product.start()
        async with site.writing():
            await site.more(WRITES[0])
        left = await until_drained(site.url, LEASE_SECONDS + 15.0)
        status = await site.product.stop()
        events = {event: request for event, _, _, request in await query(site.url, EVENTS)}
        told = judged(site.load, events, site.there.got, site.product.log, collector.spans)
    told |= {"engine": engine, "kills": kills, "unfinished": left, "exit": status}
    print(json.dumps(told))
    return told


def judged(
    load: Load, events: Mapping[str, str], got: Sequence[Receipt], log: Path,
    spans: Sequence[Exported],
) -> dict[str, Any]:  # fmt: skip
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
    assert figures["writes"], "nothing was written"
    assert figures["requests_received"], "nothing was received"
    return figures | {"findings": {what: (len(ids), ids[:3]) for what, ids in missing.items()}}


@ENGINES
async def test_one_search_finds_everything_across_kills(engine: Engine) -> None:
    told = await run_correlation(5, engine)
    assert told["findings"] == {}
    assert (told["unfinished"], told["exit"]) == (0, 0)
    assert told["attempt_spans"] > 0


async def test_a_process_that_forgets_killed_attempts_is_seen() -> None:
    told = await run_correlation(2, "sqlite", "logs_no_rescue")
    assert "line of an attempt" in told["findings"], told


FAILED = 10
FAILURES = "select count(*) from attempts where outcome = 'http_5xx'"
COUNTER = re.compile(r"^webhook_attempts_total\{[^}]*\} (\S+)$", re.MULTILINE)
ROWS = "select count(*), count(distinct delivery_id || ' ' || number) from attempts"


@ENGINES
async def test_attempts_are_counted_logged_and_received_once(engine: Engine) -> None:
    """In a run without a crash, with some receivers that fail at first."""
    async with deployed(engine, SEED) as site:
        there, failed = site.there, 0
        there.behave(status=500)
        async with aiohttp.ClientSession() as http, asyncio.timeout(60):
            while failed < FAILED:
                await site.load.write(http, site.product.address)
                [(failed,)] = await query(site.url, FAILURES)
        there.behave(status=200)
        async with site.writing():
            await site.more(300)
        await until_drained(site.url, 60)
        again = [
            {(receipt.event_id, site.tenants.paths[receipt.path]): "failed"}
            for receipt in there.got
            if receipt.answered is None
        ]
        verdict = await site.verdict("counters", in_flight=again)
        _, page = await site.product.get("/metrics")
        counted = round(sum(float(value) for value in COUNTER.findall(page)))
        [(logged, different)] = await query(site.url, ROWS)
    told = {"counted": counted, "logged": logged, "different": different, "got": len(there.got)}
    verdict.find(len({*told.values()}) - 1, f"other numbers of attempts: {told}")
    verdict.find(verdict.duplicated == 0, "no delivery failed first")
    verdict.figures |= told
    verdict.must_hold()

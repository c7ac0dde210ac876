"""Spans of requests, units and attempts, as a collector decodes them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Tracing
from gateway.server.telemetry.metrics import METRICS
from gateway.server.telemetry.spans import LONGEST_PATH
from outbox.database.transaction import Database
from tests.support.drain import add_webhook
from tests.support.process import command, environment
from tests.support.receiver import Receiver, receiver
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import Site, serving

Value = str | int | float | bool


@dataclass(frozen=True)
class Exported:
    """A span as a collector reads it; ids are hex digits, times nanoseconds."""

    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    began: int
    ended: int
    attributes: Mapping[str, Value]
    failed: bool
    why: str
    service: Mapping[str, Value]


@dataclass
class TraceCollector:
    """The received spans and requests; `status` is the answer from now on."""

    url: str = ""
    status: int = 200
    spans: list[Exported] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    hold: asyncio.Event | None = None
    """While set to an event, requests wait for it."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        async with self.changed:
            self.headers.append({name.lower(): text for name, text in request.headers.items()})
            self.changed.notify_all()
        if self.hold is not None:
            await self.hold.wait()
        if self.status == 200:
            assert request.content_type == "application/x-protobuf"
            found = decoded(body)
            async with self.changed:
                self.spans += found
                self.changed.notify_all()
        return web.Response(
            status=self.status,
            body=ExportTraceServiceResponse().SerializeToString(),
            content_type="application/x-protobuf",
        )

    async def until(self, count: int, seconds: float = 20) -> list[Exported]:
        """Wait for `count` spans, and return all."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.spans) >= count)
        return self.spans

    async def asked(self, count: int, seconds: float = 20) -> None:
        """Wait for `count` requests."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.headers) >= count)


def decoded(body: bytes) -> list[Exported]:
    """Return the spans of an export request."""
    found = []
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = {pair.key: value_of(pair.value) for pair in resource.resource.attributes}
        for scope in resource.scope_spans:
            found += [
                Exported(
                    span.name,
                    Message.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    {pair.key: value_of(pair.value) for pair in span.attributes},
                    span.status.code == Status.STATUS_CODE_ERROR,
                    span.status.message,
                    service,
                )
                for span in scope.spans
            ]
    return found


def value_of(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    assert kind is not None
    found: Value = getattr(value, kind)
    return found


@asynccontextmanager
async def trace_collector() -> AsyncIterator[TraceCollector]:
    """Run a collector on its own port."""
    there = TraceCollector()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/traces", there.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    there.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield there
    finally:
        await runner.cleanup()


CLIENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PROBE = CLIENT.replace("4bf", "5cf")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
LOCAL = msgspec.convert({"egress": {"allow_http": True, "allow": ["127.0.0.0/8"]}}, Config)


def configured(**tracing: object) -> Config:
    return msgspec.structs.replace(
        UNLIMITED, egress=LOCAL.egress, tracing=msgspec.convert(tracing, Tracing)
    )


@asynccontextmanager
async def traced(
    db: Database, **tracing: object
) -> AsyncIterator[tuple[Site, Person, Receiver, str]]:
    """Serve with a webhook of one person; the last value is its id."""
    async with receiver() as inbox, serving(db, configured(**tracing), role="all") as site:
        ana = await RestApi(site).person()
        webhook_id, _ = await add_webhook(
            db, site.app[KEYRING], f"{inbox.url}/hook", "contact.created", owner=ana.user_id
        )
        yield site, ana, inbox, webhook_id


async def create(site: Site, ana: Person, **headers: str) -> str:
    """Create a contact; return the request id of the response."""
    sent = ana.headers | {name.replace("_", "-"): v for name, v in headers.items()}
    async with site.http.post("/api/contacts", json={"name": "Bia"}, headers=sent) as answer:
        assert answer.status == 201
        assert "traceparent" not in answer.headers
        return answer.headers["X-Request-Id"]


def counted(site: Site, result: str) -> float:
    value = site.app[METRICS].registry.get_sample_value("tracing_spans_total", {"result": result})
    assert value is not None
    return value


async def test_a_write_is_one_trace_from_the_client_to_the_receiver(db: Database) -> None:
    """Probes leave no span, and so do the units of the drain: a batch belongs to many traces."""
    async with trace_collector() as collector:
        endpoint = f"{collector.url}/v1/traces"
        async with traced(db, endpoint=endpoint) as (site, ana, inbox, webhook):
            for path in ("/livez", "/readyz", "/metrics"):
                async with site.http.get(path, headers={"traceparent": PROBE}) as answer:
                    assert answer.status == 200
            began = db.clock.wall()
            request_id = await create(site, ana, traceparent=CLIENT)
            [arrived] = await inbox.wait(1)
        ended = db.clock.wall()
    ids = {span.span_id for span in collector.spans}
    assert len(ids) == len(collector.spans)
    assert {span.trace_id for span in collector.spans if span.kind == "server"} == {TRACE}
    assert {span.parent_id for span in collector.spans if span.kind != "server"} <= ids
    [request] = [span for span in collector.spans if span.kind == "server"]
    assert (request.name, request.parent_id) == ("POST /api/contacts", "00f067aa0ba902b7")
    assert request.attributes["carteiro.request_id"] == request_id
    assert request.attributes["http.response.status_code"] == 201
    assert not request.failed
    # In nanoseconds.
    assert began * 1_000 <= request.began <= request.ended <= ended * 1_000
    units = [span for span in collector.spans if span.kind == "internal"]
    assert [span.name for span in units if span.name.startswith("write")] == ["write create"]
    assert {span.parent_id for span in units} == {request.span_id}
    [attempt] = [span for span in collector.spans if span.kind == "client"]
    seen = dict(arrived.headers)
    assert seen["traceparent"] == f"00-{TRACE}-{attempt.span_id}-01"
    assert attempt.parent_id == request.span_id
    assert attempt.attributes["messaging.message.id"] == seen["webhook-id"]
    assert attempt.attributes["carteiro.webhook_id"] == webhook
    assert attempt.attributes["carteiro.outcome"] == "success"
    assert attempt.attributes["carteiro.request_id"] == request_id
    assert {span.service["service.name"] for span in collector.spans} == {"Carteiro"}


async def refusal(request: web.Request) -> web.StreamResponse:
    return web.Response(status=404)


async def test_a_failed_attempt_is_an_error(db: Database) -> None:
    async with trace_collector() as collector:
        async with traced(db, endpoint=collector.url + "/v1/traces") as (site, ana, inbox, _):
            inbox.answer = refusal
            await create(site, ana, traceparent=CLIENT)
            await inbox.wait(1)
            # The process ends only after the result is recorded.
        [attempt] = [span for span in collector.spans if span.kind == "client"]
    assert attempt.failed
    assert attempt.attributes["error.type"] == "http_4xx"
    assert attempt.attributes["http.response.status_code"] == 404
    assert attempt.attributes["carteiro.state"] == "ready"


@pytest.mark.parametrize(
    ("given", "sample", "recorded"),
    [
        (CLIENT, 0.0, True),  # the client has decided
        (CLIENT[:-2] + "00", 1.0, False),
        ("00-malformed-01", 1.0, True),
        ("00-malformed-01", 0.0, False),
    ],
)
async def test_only_sampled_traces_are_exported(
    db: Database, given: str, sample: float, recorded: bool
) -> None:
    async with trace_collector() as collector:
        endpoint = f"{collector.url}/v1/traces"
        async with traced(db, endpoint=endpoint, sample=sample) as (site, ana, inbox, _):
            before = len(collector.spans)
            request_id = await create(site, ana, traceparent=given)
            [arrived] = await inbox.wait(1)
        spans = [
            span for span in collector.spans[before:]
            if span.attributes.get("carteiro.request_id") == request_id
        ]  # fmt: skip
    flags = dict(arrived.headers)["traceparent"].rpartition("-")[2]
    assert (flags, {span.kind for span in spans}) == (
        ("01", {"server", "client"}) if recorded else ("00", set())
    )
    assert "malformed" not in str(arrived.headers)
    assert (dict(arrived.headers)["traceparent"].split("-")[1] == TRACE) == (
        given != "00-malformed-01"
    )


async def test_headers_for_the_collector_are_sent(db: Database) -> None:
    async with trace_collector() as collector:
        endpoint, headers = (
            f"{collector.url}/v1/traces",
            ["X-Team: one:two", "Authorization: Bearer t"],
        )
        async with traced(db, endpoint=endpoint, headers=headers) as (site, ana, *_):
            await create(site, ana)
        assert {(h["x-team"], h["authorization"]) for h in collector.headers} == {
            ("one:two", "Bearer t")
        }


@pytest.mark.slow
async def test_a_collector_that_hangs_holds_nothing_up(db: Database) -> None:
    async with trace_collector() as collector:
        collector.hold = asyncio.Event()
        async with traced(db, endpoint=f"{collector.url}/v1/traces") as (site, ana, inbox, _):
            await create(site, ana)
            await collector.asked(1)
            for _ in range(5):
                await create(site, ana)
            await inbox.wait(6)
        # Nor the end of the server, which goes on although no answer has come.
        collector.hold.set()
    assert counted(site, "dropped") > 5


@pytest.mark.slow
async def test_a_span_keeps_little_of_what_a_client_chooses(db: Database) -> None:
    """Thousands of spans may wait in the memory, also of clients that are not known."""
    async with trace_collector() as collector:
        async with traced(db, endpoint=f"{collector.url}/v1/traces") as (site, _, _, _):
            path = "/" + "a" * 6_000
            async with site.http.request("PROPFIND", path) as answer:
                assert answer.status == 404
            [span] = await collector.until(1)
    assert span.name == "_OTHER unmatched"
    assert span.attributes["http.request.method"] == "_OTHER"
    assert span.attributes["url.path"] == path[:LONGEST_PATH]


def test_an_endpoint_without_the_package_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "gateway.server.telemetry.otlp", raising=False)
    given = {"CARTEIRO_TRACING__ENDPOINT": "http://127.0.0.1:4318"}
    done = command("check-config", folder=tmp_path, **given)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("carteiro: tracing.endpoint needs the packages of carteiro[trac")
    assert done.stderr.count("\n") == 1


@pytest.mark.proof
def test_without_an_endpoint_nothing_of_opentelemetry_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from gateway import app\n"
        "from gateway.__main__ import main\n"
        "real = app.collector\n"
        "def seen(*args):\n"
        "    assert real(*args) is None\n"
        "    raise SystemExit(7 + any(name.startswith('opentelemetry') for name in sys.modules))\n"
        "app.collector = seen\n"
        "main(['serve'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(tmp_path), capture_output=True
    )
    assert done.returncode == 7, done.stderr

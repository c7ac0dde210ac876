"""A trace collector: receives OTLP over HTTP and decodes it with OpenTelemetry's own messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Status

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

"""Exports spans by OTLP over HTTP; the only module that needs OpenTelemetry, an extra package."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

import requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from gateway.server.telemetry.spans import Span

TIMEOUT_SECONDS = 5.0
MOST_READS = 8
READ_BYTES = 4_096
"""A collector answers with some bytes; of what else answers, MOST_READS times as many are read."""
KINDS = {
    "server": SpanKind.SERVER,
    "client": SpanKind.CLIENT,
    "internal": SpanKind.INTERNAL,
}
SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class OtlpExporter:
    """Sends spans to the OTLP endpoint `url`, for example `http://127.0.0.1:4318/v1/traces`.

    `service` describes this process. The exporter also reads the variables `OTEL_EXPORTER_OTLP_*`
    of OpenTelemetry, for example for certificates.
    """

    def __init__(self, url: str, headers: Mapping[str, str], service: Mapping[str, str]) -> None:
        # Its own records would be one for each batch; the queue reports a failure once.
        log = logging.getLogger("opentelemetry.exporter.otlp")
        log.setLevel(logging.CRITICAL)
        self._heard = Heard()
        heard = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        heard.setLevel(logging.WARNING)
        heard.propagate = False
        heard.handlers = [self._heard]
        self._resource = Resource.create(dict(service))
        self._scope = InstrumentationScope("carteiro", service["service.version"])
        self._exporter = OTLPSpanExporter(
            endpoint=url, headers=dict(headers), timeout=TIMEOUT_SECONDS, session=_session()
        )

    def export(self, spans: Sequence[Span]) -> str | None:
        """Send the spans; return None, or why the collector did not take them."""
        self._heard.text = ""
        result = self._exporter.export([self._readable(span) for span in spans])
        return None if result is SpanExportResult.SUCCESS else self._heard.text or "no reason"

    def close(self) -> None:
        """End an export under way, if it waits."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # theirs

    def _readable(self, span: Span) -> ReadableSpan:
        trace_id = int(span.trace_id, 16)
        parent = None
        if span.parent_id is not None:
            parent = SpanContext(trace_id, int(span.parent_id, 16), span.remote, SAMPLED)
        return ReadableSpan(
            span.name,
            context=SpanContext(trace_id, int(span.span_id, 16), False, SAMPLED),
            parent=parent,
            resource=self._resource,
            attributes=span.attributes,
            kind=KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
            start_time=span.began * 1_000,
            end_time=span.ended * 1_000,
            instrumentation_scope=self._scope,
        )


def _session() -> requests.Session:
    """Return a session that reads little of a response: of one, only the status matters."""
    session = requests.Session()
    session.stream = True
    session.hooks["response"].append(_judge)
    return session


def _judge(response: requests.Response, **_: object) -> None:
    """Read the response, so that its connection can be used again. Raise for a redirect."""
    for _read in range(MOST_READS):
        if not response.raw.read1(READ_BYTES):
            break
    else:
        response.close()
    if 300 <= response.status_code < 400:
        response.close()
        # The exporter does not follow it, and takes it for a success.
        raise requests.TooManyRedirects("the answer is a redirect; use the URL of its target")


class Heard(logging.Handler):
    """Keeps the first text that the exporter logs: it returns no reason for a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = self.text or record.getMessage()

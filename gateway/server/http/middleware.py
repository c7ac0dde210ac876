"""The frame of every request: its route, ids, error responses, log line and metrics.

It is no middleware of aiohttp, whose chain of wrappers costs time in every request.
It is one module because the steps of a request share its state.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestPayloadError
from msgspec import Struct

from gateway.domain.accounts.networks import share_of
from gateway.records.errors import Refusal, of_database
from gateway.server.app_keys import CALLER, REQUEST_ID
from gateway.server.config import Config
from gateway.server.http import bodies, cors
from gateway.server.http.answers import carried
from gateway.server.http.client_address import CLIENT, Client, Proxies
from gateway.server.http.rate_limits import LIMITS, RATE_LIMIT
from gateway.server.telemetry.health import Health
from gateway.server.telemetry.logs import logger, record_writer
from gateway.server.telemetry.metric_table import Reason, Surface
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.spans import Served, Spans
from gateway.server.telemetry.trace_context import Marks, Trace
from outbox.clock import Clock
from outbox.database.fair_limit import Crowded
from outbox.database.transaction import Commits, RequestBudget, commits, patience
from outbox.errors import DatabaseUnavailable
from outbox.events import Cause, cause

# At most 64 characters that cannot break a log line, a header or a query.
WELL_FORMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+/=@-]{0,63}", re.ASCII)
Refuse = Callable[[Refusal, web.Request, int | None], web.StreamResponse]
"""Returns the response of a refusal; the status overrides that of its code unless None."""
HTTPS_ONLY = "max-age=31536000"
"""Browsers use only https for a year."""
CLIENT_LEFT = 499
"""The logged status of a request whose client disconnected before the response."""
ADVICE = "Repeat it with the same Idempotency-Key, or look before repeating."
"""What to do when the outcome of a write is unknown."""
REASONS: dict[str, Reason] = {
    "unauthenticated": "auth",
    "conflicting_credentials": "auth",
    "forbidden": "forbidden",
    "origin_not_allowed": "csrf",
    "invalid_api_version": "bad_request",
    "rate_limited": "rate_limited",
    "payload_too_large": "too_large",
    "invalid_json": "bad_request",
    "validation_error": "bad_request",
    "invalid_reference": "bad_request",
    "invalid_cnpj": "bad_request",
    "unsupported_media_type": "bad_request",
}
# Errors that aiohttp raises, as codes of our closed list.
CODES = {
    400: ("validation_error", "The request is not valid HTTP."),
    404: ("not_found", "This address does not exist."),
    405: ("method_not_allowed", "This method is not allowed; see the Allow header."),
    413: ("payload_too_large", "The body is too large."),
    415: ("unsupported_media_type", "Send the body as application/json."),
    501: (
        "validation_error",
        "The Transfer-Encoding must be chunked; or send the body with Content-Length.",
    ),
    417: ("validation_error", "The Expect header is not supported."),
}


READS = frozenset({"GET", "HEAD", "OPTIONS"})
PROBES = frozenset({"/livez", "/readyz", "/metrics"})


def surface_of(path: str) -> Surface:
    """Return the part of the product that serves a path."""
    if path.startswith("/api/"):
        return "api"
    if path in PROBES:
        return "probe"
    if path.startswith("/console") and path[8:9] in ("", "/"):
        return "console"
    if path.startswith("/documents") and path[10:11] in ("", "/"):
        return "console"
    if path == "/mcp":
        return "mcp"
    return "graphql" if path == "/graphql" or path.startswith("/graphql/") else "api"


@dataclass(frozen=True, slots=True)
class Watch:
    """What sees and marks all requests."""

    clock: Clock
    marks: Marks
    metrics: Metrics
    health: Health
    spans: Spans | None = None


class Exchange(Struct, kw_only=True):
    """A request on its way through the frame, and the outcome of its response."""

    request: web.Request
    match: web.UrlMappingMatchInfo
    began: float
    request_id: str
    trace: Trace
    client: Client
    path: str
    method: str
    surface: Surface
    status: int = CLIENT_LEFT
    failure: Exception | None = None


class Frame:
    """Runs the handler of each request's route, answers errors, logs and counts.

    The units of a request share one patience with the database, which also knows whose request it
    is.
    """

    def __init__(
        self, app: web.Application, config: Config, watch: Watch, proxies: Proxies, refuse: Refuse
    ) -> None:
        """`refuse` renders refusals that no door has rendered."""
        self._app = app
        self._watch = watch
        self._now = watch.clock.monotonic
        self._active = watch.metrics.active
        self._proxies = proxies
        self._refuse = refuse
        self._log = record_writer("request")
        self._listens_to_traces = config.tracing.accept
        self._origins = config.server.cors_origins
        self._constant = {}
        if config.server.public_url.startswith("https:"):
            self._constant["Strict-Transport-Security"] = HTTPS_ONLY
        # It replaces aiohttp's header, which contains names and versions of libraries.
        self._constant["Server"] = config.service.name

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request. Raise it where aiohttp expects an HTTPException."""
        exchange = await self.begin(request)
        try:
            return await self.answer(exchange)
        finally:
            self.end(exchange)

    async def begin(self, request: web.Request) -> Exchange:
        """Find the route of a request, and mark it and all that it does."""
        began = self._now()
        headers, method, path = request.headers, request.method, request.path
        match = await self._app.router.resolve(request)
        match.add_app(self._app)
        request._match_info = match
        marks = self._watch.marks
        request_id = headers.get("X-Request-Id")
        if request_id is None or WELL_FORMED.fullmatch(request_id) is None:
            request_id = marks.request_id()
        trace = marks.begin(headers.get("traceparent") if self._listens_to_traces else None)
        peer, scheme, host = request.remote or "", request.scheme, request.host
        # Without a loop, because it runs for every request.
        if (
            "X-Forwarded-For" in headers
            or "X-Forwarded-Proto" in headers
            or "X-Forwarded-Host" in headers
            or "Forwarded" in headers
        ):
            client = self._proxies.client(peer, scheme, host, headers)
        else:
            client = Client(peer, scheme, host, False)
        request[REQUEST_ID] = request_id
        request[CLIENT] = client
        surface = surface_of(path)
        if method not in READS or self._watch.spans is not None:
            # Only writes store events; a read needs its cause for the spans of its transactions.
            # Those of a probe must have none: they lack their parent, as a probe has no span.
            cause.set(Cause(request_id, None if surface == "probe" else trace.traceparent))
        # The requests of a connection share a context.
        commits.set(None if method in READS else Commits())
        patience.set(RequestBudget(owner=client.address))
        self._active[surface] += 1
        return Exchange(
            request=request, match=match, began=began, request_id=request_id, trace=trace,
            client=client, path=path, method=method, surface=surface,
        )  # fmt: skip

    async def answer(self, exchange: Exchange) -> web.StreamResponse:
        """Return the response of the route, or that of its error."""
        request = exchange.request
        try:
            if "Expect" in request.headers:
                # 100, or it raises 417, with the header in a text that UTF-8 may not express.
                try:
                    await exchange.match.expect_handler(request)
                except UnicodeEncodeError:
                    raise web.HTTPExpectationFailed from None
                await request.writer.drain()
            coding = request.headers.get("Transfer-Encoding")
            if coding is not None and coding.strip().lower() != "chunked":
                raise web.HTTPNotImplemented
            response = await exchange.match.handler(request)
            response = carried(request, response, must=exchange.surface == "probe")
        except Exception as error:  # noqa: BLE001 - every error gets a response
            exchange.failure = error
            await bodies.close(request)
            if isinstance(error, Refusal) and error.code == "rate_limited":
                await slow_down(request)
            response = answer_to(error, request, exchange.surface, self._refuse)
            _count(self._watch.metrics, exchange.surface, error, response.status)
            if isinstance(response, web.HTTPException):
                # aiohttp expects that an HTTPException is raised, not returned.
                exchange.status = response.status
                self._finish(exchange, response)
                raise response from None
        exchange.status = response.status
        if not response.prepared:
            self._finish(exchange, response)
        return response

    def end(self, exchange: Exchange) -> None:
        """Count and log a request, whatever has become of it."""
        surface, method, status = exchange.surface, exchange.method, exchange.status
        metrics, spans = self._watch.metrics, self._watch.spans
        self._active[surface] -= 1
        seconds = self._now() - exchange.began
        resource = exchange.match.route.resource
        # A route for any method only refuses methods, so it counts as unmatched.
        route = "unmatched"
        if resource is not None and exchange.match.route.method != "*":
            route = resource.canonical
        metrics.request(surface, route, method, status, seconds)
        if self._log is None and status < 500 and spans is None:
            return
        caller = exchange.request.get(CALLER)
        trace = exchange.trace
        served = Served(
            surface=surface,
            method=method,
            route=route,
            path=exchange.path,
            status=status,
            duration_ms=round(seconds * 1000, 3),
            request_id=exchange.request_id,
            trace_id=trace.trace_id,
            span_id=trace.span_id,
            address=exchange.client.address,
            actor=None if caller is None else caller.key_id or caller.owner_id,
        )
        if spans is not None and surface != "probe":
            spans.request(trace, served, exchange.began, seconds)
        if status >= 500:
            _log_failure(served, exchange.failure)
        elif self._log is not None and (surface != "probe" or status >= 400):
            # A proxy asks three times a second: its answers would bury the other lines.
            # Whoever gets the id of a write finds it in the log, also after a kill.
            self._log(served, method not in READS)

    def _finish(self, exchange: Exchange, response: web.StreamResponse) -> None:
        """Add to a response what all responses have."""
        request, path = exchange.request, exchange.path
        if not request.content.is_eof():
            # The server would read the rest of the body as the next request.
            response.force_close()
        headers = response.headers
        headers["X-Request-Id"] = exchange.request_id
        headers.setdefault("X-Content-Type-Options", "nosniff")
        if path.startswith("/api/") and "Cache-Control" not in headers:
            headers["Cache-Control"] = "private, no-cache"
            headers.setdefault("Vary", "Authorization, X-API-Key")
        headers.update(self._constant)
        limit = request.get(RATE_LIMIT)
        if limit is not None:
            headers["RateLimit"], headers["RateLimit-Policy"] = limit
        if self._origins:
            cors.allow(request.headers.get("Origin"), path, headers, self._origins)
        if self._watch.health.draining:
            # Clients with pooled connections then connect elsewhere before this socket closes.
            response.force_close()


async def slow_down(request: web.Request) -> None:
    """Let the refusal wait of an account or address that does not wait itself."""
    caller = request.get(CALLER)
    holder = share_of(request[CLIENT].address) if caller is None else caller.owner_id
    if seconds := request.app[LIMITS].refused(holder):
        await asyncio.sleep(seconds)


def answer_to(
    error: Exception, request: web.Request, surface: Surface, refuse: Refuse
) -> web.StreamResponse:
    """Return the response for an error of a handler: `error` itself if it is a response."""
    if isinstance(error, web.HTTPException):
        if error.status < 400 or surface == "console":
            return error
        code, text = CODES.get(error.status, ("validation_error", error.reason))
        allow = error.headers.get("Allow")
        if error.status == 405 and request.method == "OPTIONS":
            headers = {} if allow is None else {"Allow": allow}
            headers |= cors.preflight(request.headers)
            return web.Response(status=204, headers=headers)
        facts = {} if allow is None else {"allow": allow}
        # 417 and the like keep their own status under the nearest code of the list.
        return refuse(Refusal(code, text, facts=facts), request, error.status)
    if isinstance(error, ConnectionError):
        raise error
    return refuse(refusal_of(error), request, None)


def refusal_of(error: Exception) -> Refusal:
    """Return the refusal of an error that is no response."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DatabaseUnavailable):
        return of_database(error, commits.get(), ADVICE)
    if isinstance(error, Crowded):
        text = "Too many requests of this account are waiting; send fewer at once."
        return Refusal("rate_limited", text, facts={"retry_after": error.seconds})
    if isinstance(error, RequestPayloadError):
        return Refusal("invalid_json", "The body is incomplete or malformed.")
    return Refusal("internal_error", "Internal server error; report it with the requestId.")


def _count(metrics: Metrics, surface: Surface, error: Exception, status: int) -> None:
    """Count a refused request by reason."""
    if isinstance(error, Refusal):
        reason = REASONS.get(error.code)
        if reason is not None:
            metrics.rejected(surface, reason)
    elif status in (400, 413):
        metrics.rejected(surface, "too_large" if status == 413 else "bad_request")


def _log_failure(served: Served, failure: BaseException | None) -> None:
    fields: dict[str, Any] = msgspec.to_builtins(served)
    if isinstance(failure, DatabaseUnavailable):
        logger().warning("request", error_kind=f"db_{failure.kinds[-1]}", **fields)
    elif failure is None or isinstance(failure, Refusal | web.HTTPException):
        logger().warning("request", **fields)
    else:
        # The text of an exception may contain data of a client, so only the log gets it.
        logger().error("request", error_kind=type(failure).__name__, exc_info=failure, **fields)

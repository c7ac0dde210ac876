"""The routes for monitoring: /livez, /readyz and /metrics, whose text a thread renders."""

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from gateway.domain.accounts.networks import Networks, parse
from gateway.records.errors import Refusal
from gateway.server import config
from gateway.server.http.client_address import CLIENT, Client
from gateway.server.processes.member import MEMBER, SILENT
from gateway.server.telemetry.health import HEALTH
from outbox.clock import Clock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CACHED_SECONDS = 1.0
FRESH = {"Cache-Control": "no-store"}


class Exposition:
    """A renderer of the registry, in a separate thread and at most once a second."""

    def __init__(
        self,
        registry: CollectorRegistry,
        settings: config.Metrics,
        clock: Clock,
        public_url: str = "",
    ) -> None:
        self._registry = registry
        self._token = settings.token
        hosts = (*settings.hosts, urlsplit(public_url).hostname or "")
        self._hosts = frozenset(host.lower() for host in hosts if host)
        self._allowed = Networks(settings.allow)
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "metrics")
        self._lock = asyncio.Lock()
        self._text = b""
        self._rendered: float | None = None

    def admit(self, client: Client, authorization: str) -> None:
        """Raise forbidden, naming the setting, unless this client may read the metrics."""
        scheme, _, token = authorization.partition(" ")
        if self._token and scheme.lower() == "bearer":
            # compare_digest refuses text that is not ASCII, so it gets bytes.
            token_bytes = token.strip().encode("utf-8", "surrogateescape")
            if hmac.compare_digest(token_bytes, self._token.encode()):
                return
        if not self._is_ours(client.host):
            raise Refusal(
                "forbidden",
                "Unknown host name. Use the address, add the name to [metrics] hosts, or send "
                "[metrics] token as Authorization: Bearer.",
            )
        if client.outside or not self._allowed.hold(client.address):
            raise Refusal(
                "forbidden",
                "This address is not in [metrics] allow. Add its network there, or send "
                "[metrics] token as Authorization: Bearer.",
            )

    def _is_ours(self, host: str) -> bool:
        """Return whether the host is ours, so that DNS rebinding by another site is impossible.

        Names without a dot belong to the local network; nobody can register one.
        """
        name = host.lower()
        if name in self._hosts or parse(name) is not None:
            return True
        name = name.partition(":")[0].rstrip(".")
        return name in self._hosts or (name != "" and "." not in name)

    async def text(self) -> bytes:
        """Return the exposition, at most a second old."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._rendered is None or now - self._rendered >= CACHED_SECONDS:
                loop = asyncio.get_running_loop()
                self._text = await loop.run_in_executor(
                    self._thread, generate_latest, self._registry
                )
                self._rendered = now
            return self._text

    def close(self) -> None:
        """Wait for the end of a rendering."""
        self._thread.shutdown(wait=True)


EXPOSITION = web.AppKey("EXPOSITION", Exposition)


async def livez(request: web.Request) -> web.Response:
    """Report that the process and its event loop run."""
    return _json(200, {"status": "alive"})


async def readyz(request: web.Request) -> web.Response:
    """Report whether the node is ready, with one of its processes at least; a 503 says why not."""
    member = request.app[MEMBER]
    own = request.app[HEALTH].faults
    faults = await (own() if member is None else member.faults(own))
    if faults:
        return _json(503, {"status": "not ready", "reasons": faults})
    return _json(200, {"status": "ready"})


async def metrics(request: web.Request) -> web.Response:
    """Return the Prometheus text of the node to clients that `[metrics]` allows."""
    exposition = request.app[EXPOSITION]
    exposition.admit(request[CLIENT], request.headers.get("Authorization", ""))
    member = request.app[MEMBER]
    body = await (exposition.text() if member is None else member.metrics())
    if body is None:
        return _json(503, {"status": "not ready", "reasons": [SILENT]})
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE} | FRESH)


def add_probes(router: web.UrlDispatcher) -> None:
    """Add the routes; aiohttp supports HEAD wherever there is GET."""
    router.add_get("/livez", livez)
    router.add_get("/readyz", readyz)
    router.add_get("/metrics", metrics)


def _json(status: int, body: object) -> web.Response:
    return web.json_response(body=msgspec.json.encode(body), status=status, headers=FRESH)

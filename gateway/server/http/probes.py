"""The routes for monitoring: /livez, /readyz and /metrics."""

import msgspec
from aiohttp import web

from gateway.server.http.exposition import CONTENT_TYPE, EXPOSITION
from gateway.server.http.proxies import CLIENT
from gateway.server.processes.member import MEMBER, SILENT
from gateway.server.telemetry.health import HEALTH

FRESH = {"Cache-Control": "no-store"}


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

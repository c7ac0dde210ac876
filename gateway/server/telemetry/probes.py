"""The addresses outside of /api that machines ask: /livez, /readyz and /metrics."""

import msgspec
from aiohttp import web

from gateway.server.keys import CLIENT, EXPOSITION, HEALTH
from gateway.server.telemetry.exposition import CONTENT_TYPE

FRESH = {"Cache-Control": "no-store"}


async def livez(request: web.Request) -> web.Response:
    """The process runs and its loop turns."""
    return _said(200, {"status": "alive"})


async def readyz(request: web.Request) -> web.Response:
    """Whether to send requests here; 503 says why not."""
    faults = await request.app[HEALTH].faults()
    if faults:
        return _said(503, {"status": "not ready", "reasons": faults})
    return _said(200, {"status": "ready"})


async def metrics(request: web.Request) -> web.Response:
    """The Prometheus text, for those whom `[metrics]` admits."""
    exposition = request.app[EXPOSITION]
    exposition.admit(request[CLIENT], request.headers.get("Authorization", ""))
    body = await exposition.text()
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE} | FRESH)


def add_probes(app: web.Application) -> None:
    """Hang them on `app`; aiohttp lets HEAD answer wherever GET does."""
    app.router.add_get("/livez", livez)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)


def _said(status: int, body: object) -> web.Response:
    return web.json_response(body=msgspec.json.encode(body), status=status, headers=FRESH)

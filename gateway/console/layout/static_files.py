"""The static files of the console: their list, their digests, and the route that serves them."""

import hashlib
from functools import cache
from pathlib import Path

from aiohttp import web

STATIC = Path(__file__).parents[1] / "static"
FILES = web.AppKey("CONSOLE_FILES", dict[str, tuple[Path, str]])
YEAR = 31_536_000


@cache
def files() -> dict[str, tuple[Path, str]]:
    """Return the name of each file with its path and its digest."""
    return {
        path.relative_to(STATIC).as_posix(): (path, _digest(path))
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in (".css", ".js", ".svg")
    }


async def serve(request: web.Request) -> web.StreamResponse:
    """Serve a static file; a URL with its digest is cached for a year."""
    name = request.match_info["name"]
    if name not in request.app[FILES]:
        raise web.HTTPNotFound
    path, digest = request.app[FILES][name]
    keep = f"max-age={YEAR}, immutable" if request.query.get("v") == digest else "no-cache"
    return web.FileResponse(
        path, headers={"Cache-Control": keep, "X-Content-Type-Options": "nosniff"}
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]

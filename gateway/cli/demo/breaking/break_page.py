"""Serves the page of `carteiro demo --break` on the loopback interface.

Only the page itself can make faults: a request needs the token in it, and JSON, which another site
cannot send without a preflight. A host other than ours is refused, so that a name that an attacker
points at the loopback address reads nothing either.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from importlib.resources import files

import jinja2
from aiohttp import web

from gateway.cli.demo.breaking.acts import ACTS, BY_NAME
from gateway.cli.demo.breaking.show import Show, possible
from gateway.cli.demo.demo_gateway import Account
from gateway.cli.language import code, spoken
from outbox.ids import Ids

STYLES = ("vendor/pico.min.css", "console.css", "mark.svg")
"""What the page takes from the console."""
KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
HEADER = "X-Demo-Token"
IN_SCRIPT = (
    "fault", "recovering", "recovered", "failed", "seconds", "up", "down", "broken", "gone",
    "kept_back",
)  # fmt: skip
"""Texts that the script shows, by what follows `break.`."""


class BreakPage:
    """The page's server; its acts are made of the `show`."""

    def __init__(self, show: Show, ids: Ids, account: Account) -> None:
        self.url = ""
        self._show = show
        self._account = account
        self._token = ids.token(18).hex()
        self._acts: set[asyncio.Task[object]] = set()
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1, on a free port by default."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/", self._page)
        app.router.add_get("/ledger", self._ledger)
        app.router.add_post("/acts/{name}", self._act)
        app.router.add_get("/static/{name:.+}", self._static)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End the acts that last, and stop listening."""
        self._show.stopping.set()
        for task in tuple(self._acts):
            task.cancel()
        await asyncio.gather(*self._acts, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if request.host != self.url.partition("//")[2]:
            raise web.HTTPForbidden
        return await handler(request)

    async def _page(self, request: web.Request) -> web.Response:
        t = spoken()
        source = files("gateway.cli.demo.breaking").joinpath("page", "page.html").read_text("utf-8")
        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        text = environment.from_string(source).render(
            t=t, language=code(), token=self._token, acts=ACTS, account=self._account,
            console=f"{self._show.scene.gateway.url}/console",
            said={name: t(f"break.{name}") for name in IN_SCRIPT},
            names={act.name: t(f"break.act.{act.name}") for act in ACTS},
        )  # fmt: skip
        return _response(text, "text/html")

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name in STYLES:
            file = files("gateway.console").joinpath("static", *name.split("/"))
        elif name in ("page.css", "page.js", "chart.js"):
            file = files("gateway.cli.demo.breaking").joinpath("page", name)
        else:
            raise web.HTTPNotFound
        return _response(file.read_text("utf-8"), KINDS[name[name.rfind(".") :]])

    async def _ledger(self, request: web.Request) -> web.Response:
        names = [act.name for act in possible()]
        told = self._show.ledger.told(up=self._show.up, possible=names)
        return web.json_response(told | {"busy": self._show.busy})

    async def _act(self, request: web.Request) -> web.Response:
        sent = request.headers.get(HEADER, "")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType
        if not hmac.compare_digest(sent.encode(), self._token.encode()):
            raise web.HTTPForbidden
        act = BY_NAME.get(request.match_info["name"])
        if act is None or not act.possible:
            raise web.HTTPNotFound
        if self._show.busy:
            raise web.HTTPConflict
        task = asyncio.create_task(self._show.perform(act))
        self._acts.add(task)
        task.add_done_callback(self._acts.discard)
        return web.Response(status=202)


def _response(text: str, kind: str) -> web.Response:
    return web.Response(
        text=text, content_type=kind, charset="utf-8",
        headers={
            "Content-Security-Policy": POLICY, "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
        },
    )  # fmt: skip

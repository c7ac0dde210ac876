"""Serves the demo's shop page, on an origin of its own, and plays the shop's bank."""

from importlib.resources import files
from urllib.parse import quote

from aiohttp import web

from gateway import texts
from gateway.cli.demo import demo_goods, pictures
from gateway.cli.demo.demo_gateway import DemoFault
from gateway.cli.demo.demo_goods import GOODS, Owner

PAGES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
PICTURES = {good.file: pictures.draw(*good.picture) for good in GOODS} | {"mark.svg": pictures.MARK}


class Shop:
    """The web server of the shop; its page calls the storefront API at `api`."""

    def __init__(self, api: str, hostname: str, portuguese: str = "") -> None:
        """`portuguese` is the hostname of a second store, for browsers that ask for Portuguese."""
        self.url = ""
        self.owner: Owner | None = None
        """Pays invoices; None until the store is set up."""
        self._api = api
        self.hostname = hostname
        self.portuguese = portuguese
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1, on a free port by default."""
        app = web.Application()
        app.router.add_get("/", self._page)
        app.router.add_get("/pictures/{name}", self._picture)
        app.router.add_get("/favicon.ico", self._icon)
        app.router.add_get("/{name}", self._page)
        app.router.add_post("/pay", self._pay)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        page = files("gateway.cli.demo").joinpath("page", name)
        kind = PAGES.get(name[name.rfind(".") :])
        if kind is None or "/" in name or not page.is_file():
            raise web.HTTPNotFound
        text = page.read_text("utf-8")
        if name == "index.html":
            language = texts.asked(request.headers.get("Accept-Language", ""))
            hostname = self.portuguese if language == "pt-BR" else self.hostname
            if not hostname:
                language, hostname = "en", self.hostname
            text = text.replace("{{api}}", self._api).replace("{{hostname}}", hostname)
            text = text.replace("{{language}}", language)
        return self._response(text, kind)

    async def _picture(self, request: web.Request) -> web.Response:
        drawn = PICTURES.get(request.match_info["name"])
        if drawn is None:
            raise web.HTTPNotFound
        return self._response(drawn, "image/svg+xml")

    async def _icon(self, request: web.Request) -> web.Response:
        return self._response(pictures.MARK, "image/svg+xml")

    async def _pay(self, request: web.Request) -> web.Response:
        # Only the shop's own page: other pages cannot send JSON here without a preflight.
        if request.content_type != "application/json" or self.owner is None:
            raise web.HTTPUnsupportedMediaType
        sent = await request.json()
        try:
            await demo_goods.pay(self.owner, quote(str(sent["number"]), safe=""))
        except DemoFault as fault:
            return web.Response(status=409, text=str(fault))
        return web.Response(status=204)

    def _response(self, text: str, kind: str) -> web.Response:
        policy = (
            f"default-src 'self'; connect-src 'self' {self._api}; img-src 'self' {self.url}; "
            "frame-ancestors 'none'"
        )
        return web.Response(
            text=text, content_type=kind, charset="utf-8",
            headers={"Content-Security-Policy": policy, "Cache-Control": "no-cache",
                "Vary": "Accept-Language"},
        )  # fmt: skip

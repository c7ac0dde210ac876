"""The pages of refused requests."""

from aiohttp import web

from gateway.console.layout import guard, wording
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.menu import routed
from gateway.console.layout.reader import READER
from gateway.console.layout.templates import render
from gateway.console.layout.troubles import Troubles
from gateway.domain.cells.credential_suffix import NOBODY, marked
from gateway.records.errors import Refusal
from gateway.server.app_keys import REQUEST_ID
from gateway.server.installation import SITE
from gateway.server.telemetry.metrics import METRICS

FORGED = ("error.csrf_help", "error.origin_help")
STATUS = {
    "unauthenticated": 401, "forbidden": 403, "not_found": 404, "method_not_allowed": 405,
    "conflict": 409, "payload_too_large": 413, "unsupported_media_type": 415, "rate_limited": 429,
    "internal_error": 500, "unavailable": 503, "outcome_unknown": 503, "moving": 503,
    "misdirected": 421,
}  # fmt: skip
FACT_HEADERS = {
    "retry_after": "Retry-After",
    "allow": "Allow",
    "accept_encoding": "Accept-Encoding",
    "cell": "X-Carteiro-Cell",
}


SLOWED: web.AppKey[dict[str, str]] = web.AppKey("CONSOLE_SLOWED")
"""The page of an account that asks for too many pages, by language."""


def status_of(refusal: Refusal) -> int:
    """Return the status for a refusal; the default is 400."""
    return STATUS.get(refusal.code, 400)


def slowed(request: web.Request, seconds: int) -> web.Response:
    """Return the page of an account that asks for too many pages.

    It is rendered once and has nobody's menu, so that it costs less than the page it stands for.
    """
    rendered, texts = request.app[SLOWED], request[READER].texts
    text = rendered.get(texts.code)
    if text is None:
        nobody = {"troubles": Troubles(), "done": None, "path": "/console"}
        text = rendered[texts.code] = render(request, None, "slowed.html", nobody).text or ""
    request.app[METRICS].rejected("console", "rate_limited")
    return web.Response(
        text=text, status=429, content_type="text/html", headers={"Retry-After": str(seconds)}
    )


def methods_at(app: web.Application, path: str) -> set[str]:
    """Return the methods that an address takes, without those of any address."""
    methods = set()
    for resource in app.router.resources():
        info = resource.get_info()
        pattern = info.get("pattern")
        if path == info.get("path") or (pattern is not None and pattern.fullmatch(path)):
            methods |= {route.method for route in resource}
    return methods - {"*"}


def _back(request: web.Request) -> str:
    """Return the page that led here, else the nearest one above this address."""
    came, path = guard.came_from(request), request.rel_url.raw_path
    if came and came.partition("?")[0] != path:
        return came
    deepest = max(one.count("/") for one in routed(request.app) if one.startswith("/console/"))
    # Above a longer address is no page, and each level costs a search among all addresses.
    above = "/".join(path.split("/", deepest + 2)[: deepest + 2])
    while above.startswith("/console/"):
        above = above.rpartition("/")[0]
        if "GET" in methods_at(request.app, above):
            return above
    return "/console"


def _there(request: web.Request, refusal: Refusal) -> str:
    """Return the console of the cell that has the account.

    With a public address all cells have one console, and a proxy routes by the cookie.
    """
    url = refusal.facts.get("url")
    return "" if url is None else f"{request.app[SITE].public_url or url}/console"


def refused(request: web.Request, visitor: SignedIn | None, refusal: Refusal) -> web.Response:
    """Render a refusal as a page. Its message is a key of the catalogue or a sentence."""
    title = "error.csrf" if refusal.message == "error.csrf_help" else f"error.{refusal.code}"
    if refusal.code == "forbidden":
        request.app[METRICS].rejected(
            "console", "csrf" if refusal.message in FORGED else "forbidden"
        )
    texts = request[READER].texts
    # Its message is for programs.
    key = "error.misdirected_help" if refusal.code == "misdirected" else refusal.message
    context = {
        "title": title if title in texts else "error.other",
        "key": key if key in texts else None,
        "message": wording.refused(texts, refusal),
        "back": _back(request),
        "there": _there(request, refusal),
        "request_id": request.get(REQUEST_ID, ""),
    }
    response = render(request, visitor, "error.html", context, status=status_of(refusal))
    for fact, header in FACT_HEADERS.items():
        if fact in refusal.facts:
            response.headers[header] = str(refusal.facts[fact])
    if refusal.code == "misdirected":
        # The one before would lead to this page again; a proxy routes this one to that cell.
        token = guard.new_token(request)
        if request.app[SITE].public_url:
            token = marked(token, refusal.facts["cell"], NOBODY)
        guard.give_cookie(request, response, token, None)
    return response

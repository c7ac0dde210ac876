"""What all pages share: templates and filters, response headers, error pages."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp_jinja2
import jinja2
from aiohttp import web
from markupsafe import Markup

from gateway.console import display, guard, troubles
from gateway.console.forms import Form
from gateway.console.guard import Visitor
from gateway.console.text import ENGLISH, translate
from gateway.console.troubles import Troubles
from gateway.records.errors import Refusal, of_database
from gateway.server.app_keys import CALLER, DB, REQUEST_ID
from gateway.server.config import CONFIG
from gateway.server.telemetry.logs import logger
from gateway.server.telemetry.metrics import METRICS
from outbox.database.fair_limit import Crowded
from outbox.database.transaction import commits
from outbox.errors import DatabaseUnavailable
from outbox.ids import is_id

HERE = Path(__file__).parent
STATIC = HERE / "static"
ENVIRONMENT = web.AppKey("CONSOLE_TEMPLATES", jinja2.Environment)
TROUBLES = web.RequestKey("CONSOLE_TROUBLES", Troubles)
FILES = web.AppKey("CONSOLE_FILES", dict[str, tuple[Path, str]])

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Page = Callable[[web.Request, Visitor], Awaitable[web.StreamResponse]]
Action = Callable[[web.Request, Visitor, Form], Awaitable[web.StreamResponse]]
Limit = Callable[[web.Request, Visitor], web.StreamResponse | None]

# pico.css draws its check marks and chevrons from data: images.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: under it browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
FORGED = ("error.csrf_help", "error.origin_help")
TIMES = re.compile("<time [^>]*>[^<]*</time>")
MARK = "@seen@"
YEAR = 31_536_000


def set_up(app: web.Application) -> None:
    """Give an application the templates and the list of static files."""
    app[FILES] = _files()
    app[ENVIRONMENT] = _environment()


@cache
def _files() -> dict[str, tuple[Path, str]]:
    return {
        path.relative_to(STATIC).as_posix(): (path, _digest(path))
        for path in sorted(STATIC.rglob("*"))
        if path.suffix in (".css", ".js", ".svg")
    }


# It is the same for every application, and each environment compiles the templates once.
@cache
def _environment() -> jinja2.Environment:
    files = _files()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        t=partial(translate, ENGLISH),
        static=lambda name: f"/console/static/{name}?v={files[name][1]}",
    )
    environment.filters.update(
        took=display.took,
        percent=display.percent,
        lasting=display.lasting,
        size=display.size,
        browser=display.browser,
        inert=display.inert,
        breakable=display.breakable,
        exact=display.exact,
        pretty=display.pretty,
    )
    return environment


def render(
    request: web.Request,
    visitor: Visitor | None,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
) -> web.Response:
    """Render a template as a response."""
    now = request.app[DB].clock.wall()
    t = partial(translate, ENGLISH)
    done = request.query.get("done", "")
    values = {
        "visitor": visitor,
        "csrf": visitor.csrf if visitor else "",
        "session": visitor.session if visitor else None,
        "service": request.app[CONFIG].service.name,
        "path": request.path,
        "done": f"done.{done}" if f"done.{done}" in ENGLISH else None,
        "when": lambda micros: display.when(micros, now, t),
        "now": now,
        "troubles": request.get(TROUBLES, Troubles()),
    }
    return aiohttp_jinja2.render_template(
        template, request, values | dict(context or {}), app_key=ENVIRONMENT, status=status
    )


def live(
    request: web.Request, visitor: Visitor, template: str, part: str, context: Mapping[str, Any]
) -> web.Response:
    """Render a page with a part that htmx polls; `{{ live }}` in the template is its place.

    When nothing but times has changed since the last poll, the response is 204, so that the page
    does not move while somebody reads, selects or opens things in it.
    """
    text = render(request, visitor, part, {**context, "seen": MARK}).text or ""
    digest = hashlib.sha256(TIMES.sub("", text).encode()).hexdigest()[:16]
    text = text.replace(MARK, digest)
    if "HX-Request" not in request.headers:
        return render(request, visitor, template, {**context, "live": Markup(text)})  # noqa: S704 - our own template
    if request.query.get("seen") == digest:
        return web.Response(status=204)
    return web.Response(text=text, content_type="text/html")


def page(handler: Page, *, public: bool = False) -> Handler:
    """Return a route that shows a page; with `public`, also to visitors who are not signed in."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(request, lambda visitor: handler(request, visitor), public)

    return answer


def action(handler: Action, *, public: bool = False, limit: Limit | None = None) -> Handler:
    """Return a route for a form; the handler gets the fields that the guard has accepted.

    `limit` may return a response instead, before the form is read.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        async def act(visitor: Visitor) -> web.StreamResponse:
            slowed = limit(request, visitor) if limit is not None else None
            if slowed is not None:
                return slowed
            return await handler(request, visitor, await guard.form_of(request, visitor))

        return await _answer(request, act, public)

    return answer


async def _answer(
    request: web.Request,
    act: Callable[[Visitor], Awaitable[web.StreamResponse]],
    public: bool,
) -> web.StreamResponse:
    visitor: Visitor | None = None
    response: web.StreamResponse
    try:
        if not guard.on_our_host(request):
            raise Refusal("not_found", "error.not_found_help")
        visitor = await guard.recognise(request)
        if visitor.session is not None:
            request[CALLER] = visitor.actor
            request[TROUBLES] = await troubles.of(request, visitor)
        if visitor.session is None and not public:
            response = to_sign_in(request)
        else:
            response = await act(visitor)
    except Refusal as refusal:
        response = refused(request, visitor, refusal)
    except Crowded:
        wait = Refusal("rate_limited", "error.crowded", facts={"retry_after": 1})
        response = refused(request, visitor, wait)
    except DatabaseUnavailable as fault:
        logger().warning("console_database", error_kind=fault.kinds[-1])
        code = of_database(fault, commits.get(), "").code
        response = refused(request, visitor, Refusal(code, f"error.{code}_help"))
    except (web.HTTPException, ConnectionError):
        raise
    except Exception as fault:  # noqa: BLE001 - the log has the traceback, the page no details
        logger().error(
            "console_failed", error_kind=type(fault).__name__, exc_info=fault,
            request_id=request[REQUEST_ID],
        )  # fmt: skip
        response = refused(request, visitor, Refusal("internal_error", "error.internal_help"))
    if visitor is not None and visitor.fresh and not response.cookies:
        guard.give_cookie(request, response, visitor.token, None)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


STATUS = {
    "unauthenticated": 401, "forbidden": 403, "not_found": 404, "method_not_allowed": 405,
    "conflict": 409, "payload_too_large": 413, "unsupported_media_type": 415, "rate_limited": 429,
    "internal_error": 500, "unavailable": 503, "outcome_unknown": 503,
}  # fmt: skip
FACT_HEADERS = {
    "retry_after": "Retry-After", "allow": "Allow", "accept_encoding": "Accept-Encoding",
}  # fmt: skip


def status_of(refusal: Refusal) -> int:
    """Return the status for a refusal; the default is 400."""
    return STATUS.get(refusal.code, 400)


def refused(request: web.Request, visitor: Visitor | None, refusal: Refusal) -> web.Response:
    """Render a refusal as a page. Its message is a key of the catalogue or a sentence."""
    title = "error.csrf" if refusal.message == "error.csrf_help" else f"error.{refusal.code}"
    if refusal.code == "forbidden":
        request.app[METRICS].rejected(
            "console", "csrf" if refusal.message in FORGED else "forbidden"
        )
    context = {
        "title": title if title in ENGLISH else "error.other",
        "key": refusal.message if refusal.message in ENGLISH else None,
        "message": refusal.message,
        "request_id": request.get(REQUEST_ID, ""),
    }
    response = render(request, visitor, "error.html", context, status=status_of(refusal))
    for fact, header in FACT_HEADERS.items():
        if fact in refusal.facts:
            response.headers[header] = str(refusal.facts[fact])
    return response


def id_of(request: web.Request) -> str:
    """Return the id in the address. Raise not_found when it is not an id."""
    text = request.match_info["id"]
    if not is_id(text):
        raise Refusal("not_found", "error.not_found_help")
    return text.lower()


def to(path: str, done: str = "") -> web.Response:
    """Redirect to `path`; its page then shows the text `done.…` of the catalogue."""
    where = f"{path}{'&' if '?' in path else '?'}done={done}" if done else path
    return web.Response(status=303, headers={"Location": where})


def to_sign_in(request: web.Request) -> web.Response:
    """Redirect to the sign-in page, and back here after it; htmx replaces the whole page."""
    here = request.path_qs if request.method in guard.SAFE else "/console"
    where = f"/console/sign-in?next={quote(here, safe='/')}"
    if "HX-Request" in request.headers:
        return web.Response(status=401, headers={"HX-Redirect": "/console/sign-in"})
    return web.Response(status=303, headers={"Location": where})


def not_found(request: web.Request, visitor: Visitor) -> Awaitable[web.StreamResponse]:
    """Refuse an address under /console that has no page."""
    raise Refusal("not_found", "error.not_found_help")


def form_only(request: web.Request, visitor: Visitor) -> Awaitable[web.StreamResponse]:
    """Refuse GET at an address that only accepts forms."""
    raise Refusal("method_not_allowed", "error.form_only", facts={"allow": "POST"})


async def static(request: web.Request) -> web.StreamResponse:
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

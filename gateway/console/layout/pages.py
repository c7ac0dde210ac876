"""Wraps the handlers of pages and forms: who the visitor is, turns, errors, and response headers.

Accounts, and addresses whose visitors are not signed in, wait for their pages in turn.
It is one module because every page goes through all of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import quote

from aiohttp import web

from gateway.console.layout import (
    error_pages,
    guard,
    kept_forms,
    menu,
    static_files,
    templates,
    troubles,
)
from gateway.console.layout.error_pages import refused
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.layout.templates import TROUBLES
from gateway.domain.accounts.networks import share_of
from gateway.records.errors import Refusal, of_database
from gateway.server.app_keys import CALLER, REQUEST_ID
from gateway.server.http import multipart
from gateway.server.http.rate_limits import LIMITS, REST_SECONDS
from gateway.server.installation import ACCOUNT_RULES
from gateway.server.telemetry.logs import logger
from outbox.database.fair_limit import Crowded, FairSemaphore
from outbox.database.transaction import commits
from outbox.errors import DatabaseUnavailable
from outbox.ids import is_id

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Page = Callable[[web.Request, SignedIn], Awaitable[web.StreamResponse]]
Action = Callable[[web.Request, SignedIn, Form], Awaitable[web.StreamResponse]]
Upload = Callable[[web.Request, SignedIn, multipart.Upload], Awaitable[web.StreamResponse]]
Limit = Callable[[web.Request, SignedIn], web.StreamResponse | None]
Make = Callable[[], Awaitable[web.StreamResponse]]
Act = Callable[[SignedIn], Awaitable[web.StreamResponse]]

AT_ONCE = 3
"""Pages of an account that are made at the same time: each takes milliseconds of the event loop."""
WAITING = 256
PAUSE_SECONDS = 0.02
"""Between the pages of an account that asks for more at a time."""
TURNS = web.AppKey("CONSOLE_TURNS", FairSemaphore)
STRANGERS_AT_ONCE = 2
"""The same for an address whose visitors are not signed in: no rate limits their pages."""
STRANGERS_PAUSE_SECONDS = 0.05
STRANGERS = web.AppKey("STRANGERS_TURNS", FairSemaphore)

ENROL = "/console/account/two-factor"
"""The page on which an account sets up two-factor authentication."""
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


def set_up(app: web.Application) -> None:
    """Give an application the templates and the list of static files."""
    app[static_files.FILES] = static_files.files()
    app[templates.ENVIRONMENT] = templates.environment()
    app[error_pages.SLOWED] = {}
    set_up_turns(app)
    menu.set_up(app)


def set_up_turns(app: web.Application) -> None:
    """Give an application the places of the pages that are made at the same time."""
    app[TURNS] = FairSemaphore(WAITING * AT_ONCE, each=AT_ONCE, waiting=WAITING)
    app[STRANGERS] = FairSemaphore(WAITING, each=STRANGERS_AT_ONCE, waiting=WAITING)


def page(
    handler: Page, *, public: bool = False, enrolling: bool = False, brief: bool = True
) -> Handler:
    """Return a route that shows a page; with `public`, also to visitors who are not signed in.

    With `enrolling` also to accounts that lack the two-factor authentication that they must have.
    One that is not `brief` takes no turn, as it may wait for long, and counts itself.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(
            request, lambda visitor: handler(request, visitor), public, public or enrolling, brief
        )

    return answer


def action(
    handler: Action, *, public: bool = False, enrolling: bool = False, limit: Limit | None = None
) -> Handler:
    """Return a route for a form; the handler gets the fields that the guard has accepted.

    `enrolling` as for `page`. `limit` may return a response instead, before the form is read.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        async def act(visitor: SignedIn) -> web.StreamResponse:
            if limit is not None:
                # What another site sends must not count for the visitor whose browser it uses.
                guard.must_be_from_here(request)
                slowed = limit(request, visitor)
                if slowed is not None:
                    return slowed
            try:
                form = await guard.form_of(request, visitor)
            except Refusal:
                back = guard.FORM in request and await kept_forms.again(
                    request, visitor, request[guard.FORM]
                )
                if back:
                    return back
                raise
            return await handler(request, visitor, form)

        return await _answer(request, act, public, public or enrolling)

    return answer


def upload(handler: Upload, most: int) -> Handler:
    """Return a route for a form with a file of up to `most` bytes, after the guard's checks.

    It counts as a page before it is read. The field `csrf_token` comes before the file.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        async def act(visitor: SignedIn) -> web.StreamResponse:
            wait = request.app[LIMITS].page(visitor.actor.owner_id)
            if wait:
                return await _slowed(request, wait)
            guard.must_be_from_here(request)
            if not multipart.is_one(request):
                await guard.form_of(request, visitor)
                raise Refusal("unsupported_media_type", "error.upload_malformed")
            form = await multipart.read(request, most, "error.upload_malformed")
            guard.must_have_token(visitor, form.fields.get("csrf_token", ""))
            return await handler(request, visitor, form)

        # A file may be on its way for long.
        return await _answer(request, act, public=False, enrolling=False, brief=False)

    return answer


async def _answer(
    request: web.Request, act: Act, public: bool, enrolling: bool, brief: bool = True
) -> web.StreamResponse:
    visitor: SignedIn | None = None
    response: web.StreamResponse
    request[READER] = guard.reader_of(request, None)
    try:
        if not guard.on_our_host(request):
            raise Refusal("not_found", "error.not_found_help")
        visitor = await guard.recognise(request)
        if visitor.session is not None:
            request[CALLER] = visitor.actor
            request[READER] = guard.reader_of(request, visitor)
            request[TROUBLES] = troubles.of(request, visitor) if visitor.troubled else troubles.NONE
        if visitor.session is None:
            to_stranger = partial(_to_stranger, request, visitor, act, public=public)
            response = await stranger_turn(request, to_stranger)
        elif not enrolling and _must_enrol(request, visitor):
            response = _to_page(request, ENROL)
        elif not brief:
            response = await _acted(request, visitor, act)
        else:
            make = partial(_acted, request, visitor, act)
            response = await account_turn(request, visitor.session.owner_id, make)
    except Refusal as refusal:
        response = await stranger_turn(request, partial(_refused, request, visitor, refusal))
    except Crowded as crowded:
        facts = {"retry_after": crowded.seconds}
        response = refused(request, visitor, Refusal("rate_limited", "error.crowded", facts=facts))
    except DatabaseUnavailable as fault:
        logger().warning("console_database", error_kind=fault.kinds[-1])
        mapped = of_database(fault, commits.get(), "")
        facts = {} if mapped.code != "misdirected" else mapped.facts
        response = refused(
            request, visitor, Refusal(mapped.code, f"error.{mapped.code}_help", facts=facts)
        )
    except (web.HTTPException, ConnectionError):
        raise
    except Exception as fault:  # noqa: BLE001 - the log has the traceback, the page no details
        logger().error(
            "console_failed",
            error_kind=type(fault).__name__,
            exc_info=fault,
            request_id=request[REQUEST_ID],
        )
        response = refused(request, visitor, Refusal("internal_error", "error.internal_help"))
    if visitor is not None and visitor.fresh and not response.cookies:
        guard.give_cookie(request, response, visitor.token, None)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _to_stranger(
    request: web.Request, visitor: SignedIn, act: Act, *, public: bool
) -> web.StreamResponse:
    if public:
        return await _acted(request, visitor, act)
    return await kept_forms.ask(request, visitor) or to_sign_in(request)


async def _refused(
    request: web.Request, visitor: SignedIn | None, refusal: Refusal
) -> web.StreamResponse:
    return refused(request, visitor, refusal)


async def _acted(request: web.Request, visitor: SignedIn, act: Act) -> web.StreamResponse:
    try:
        response = await act(visitor)
    except Refusal as refusal:
        response = refused(request, visitor, refusal)
    may_bring_back = (
        request.method == "GET" and visitor.session is not None and visitor.session.reveals
    )
    return await kept_forms.bring_back(request, visitor, response) if may_bring_back else response


def charge(request: web.Request, visitor: SignedIn, tokens: int) -> None:
    """Count a page without a turn that is as much work as so many. Raise rate_limited."""
    wait = request.app[LIMITS].page(visitor.actor.owner_id, tokens)
    if wait:
        raise Refusal("rate_limited", "error.slowed_help", facts={"retry_after": wait})


def id_of(request: web.Request) -> str:
    """Return the id in the address. Raise not_found when it is not an id."""
    text = request.match_info["id"]
    if not is_id(text):
        raise Refusal("not_found", "error.not_found_help")
    return text.lower()


def to(path: str, done: str = "", count: int | None = None) -> web.Response:
    """Redirect to `path`; its page then shows the text `done.…` of the catalogue, with `count`."""
    where = f"{path}{'&' if '?' in path else '?'}done={done}" if done else path
    if count is not None:
        where += f"&count={count}"
    return web.Response(status=303, headers={"Location": where})


def to_sign_in(request: web.Request) -> web.Response:
    """Redirect to the sign-in page, and back here after it; htmx replaces the whole page."""
    here = request.path_qs
    if request.method not in guard.SAFE:
        here = kept_forms.sent_from(request) or "/console"
    if "HX-Request" in request.headers:
        # Of a form nothing may be lost: the browser sends it itself, and gets it back.
        if request.method not in guard.SAFE:
            return web.Response(status=401)
        parts = guard.parts_in(request, "HX-Current-URL")
        here = guard.inside(f"{parts.path}?{parts.query}".rstrip("?")) or "/console"
        where = f"/console/sign-in?next={quote(here, safe='/')}"
        return web.Response(status=401, headers={"HX-Redirect": where})
    where = f"/console/sign-in?next={quote(here, safe='/')}"
    return web.Response(status=303, headers={"Location": where})


def _must_enrol(request: web.Request, visitor: SignedIn) -> bool:
    """Return whether the account lacks the two-factor authentication that it must have."""
    session = visitor.session
    required = request.app[ACCOUNT_RULES].require_two_factor
    return required and session is not None and not session.two_factor


def _to_page(request: web.Request, where: str) -> web.Response:
    """Redirect to a whole page; htmx replaces the one that it is on."""
    if "HX-Request" in request.headers:
        return web.Response(status=403, headers={"HX-Redirect": where})
    return to(where)


async def nowhere(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Refuse an address under /console that has no page, or does not take this method.

    One with a slash behind it leads to the page without the slash.
    """
    address = request.rel_url
    # As the router reads it.
    path = address.path_safe
    plain = path.rstrip("/")
    methods = path != plain and error_pages.methods_at(request.app, plain)
    if methods and request.method in guard.SAFE and request.method in methods:
        # Decoded, it may be another address, or have characters that no header may have.
        return to(f"{address.raw_path.rstrip('/')}?{address.raw_query_string}".rstrip("?"))
    allowed = error_pages.methods_at(request.app, path)
    if allowed:
        allow = ",".join(sorted(allowed))
        raise Refusal("method_not_allowed", "error.not_allowed_help", facts={"allow": allow})
    raise Refusal("not_found", "error.not_found_help")


def form_only(request: web.Request, visitor: SignedIn) -> Awaitable[web.StreamResponse]:
    """Refuse GET at an address that only accepts forms."""
    raise Refusal("method_not_allowed", "error.form_only", facts={"allow": "POST"})


async def stranger_turn(request: web.Request, make: Make) -> web.StreamResponse:
    """Return a response in its turn among those of the visitor's address."""
    turns, holder = request.app[STRANGERS], share_of(guard.client_of(request).address)
    try:
        await turns.take(holder)
    except Crowded as crowded:
        return await _slowed(request, crowded.seconds)
    try:
        # Those that came with it take their places in line; a page may need no other wait.
        await asyncio.sleep(0)
        response = await make()
        if turns.waits(holder):
            await asyncio.sleep(STRANGERS_PAUSE_SECONDS)
        return response
    finally:
        turns.leave(holder)


async def account_turn(request: web.Request, owner_id: str, make: Make) -> web.StreamResponse:
    """Return the page in its turn among those of the account; above the rate, that there is one."""
    turns = request.app[TURNS]
    if not turns.take_free(owner_id):
        try:
            await turns.take(owner_id)
        except Crowded as crowded:
            return await _slowed(request, crowded.seconds)
    try:
        wait = request.app[LIMITS].page(owner_id)
        if wait:
            return await _slowed(request, wait)
        response = await make()
        if turns.waits(owner_id):
            await asyncio.sleep(PAUSE_SECONDS)
        return response
    finally:
        turns.leave(owner_id)


async def _slowed(request: web.Request, wait: int) -> web.StreamResponse:
    # A client that asks again at once then keeps nobody busy.
    await asyncio.sleep(REST_SECONDS)
    return error_pages.slowed(request, wait)

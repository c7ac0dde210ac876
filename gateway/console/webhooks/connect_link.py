"""The page of a connect link: it shows what an app asks for, and the owner allows or denies it."""

from aiohttp import web

from gateway.console.layout import guard, pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.accounts import sessions
from gateway.domain.webhooks import connect_links, connecting
from gateway.domain.webhooks.connect_links import FIELDS, Asked, Faulty, address, origin_of
from gateway.server.app_keys import DB, GUARD, IDS
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import WEBHOOK_RULES

PATH = "/console/connect"


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask the owner whether the app may have the webhook."""
    try:
        asked = _asked(request, lambda name: request.query.getall(name, []))
    except Faulty as faulty:
        return _failed(request, faulty)
    wish = asked.wish
    context = {
        "app": asked.app, "url": wish.url, "events": wish.events,
        "receiver": origin_of(wish.url), "back": origin_of(wish.redirect_uri),
        "fields": [(name, request.query[name]) for name in FIELDS if name in request.query],
    }  # fmt: skip
    response = templates.render(request, visitor, "connect.html", context)
    # Browsers check the redirect that follows a form too.
    allowed = f"form-action 'self' {origin_of(wish.redirect_uri)}"
    response.headers["Content-Security-Policy"] = pages.POLICY.replace(
        "form-action 'self'", allowed
    )
    return response


async def decide(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Send the owner back to the app: with a code when he allows it."""
    try:
        asked = _asked(request, form.all)
    except Faulty as faulty:
        return _failed(request, faulty)
    wish, state = asked.wish, asked.state
    if form.text("decision") != "allow":
        return _failed(request, connect_links.denied(asked))
    session = visitor.session
    assert session is not None, "no form without a session leads here"
    # Like a test event, so that no page can fill the table of codes.
    request.app[LIMITS].test(visitor.actor.owner_id)
    code = connecting.make(request.app[IDS])
    most = request.app[WEBHOOK_RULES].most
    await request.app[DB].write(
        sessions.while_live, session, connecting.allow, visitor.actor, wish, code, most=most
    )
    return _to(request, wish.redirect_uri, {"code": code, "state": state})


def _asked(request: web.Request, values: connect_links.Values) -> Asked:
    apps, rules = request.app[WEBHOOK_RULES].apps, request.app[GUARD].rules
    return connect_links.read(values, apps, rules)


def _failed(request: web.Request, faulty: Faulty) -> web.StreamResponse:
    parameters = {"error": faulty.error, "error_description": str(faulty)}
    if faulty.state:
        parameters["state"] = faulty.state
    return _to(request, faulty.redirect_uri, parameters)


def _to(request: web.Request, redirect_uri: str, parameters: dict[str, str]) -> web.StreamResponse:
    """Redirect to the app; `iss` tells it who answers (RFC 9207)."""
    where = address(redirect_uri, {**parameters, "iss": guard.origin_of(request)})
    return web.Response(status=303, headers={"Location": where})

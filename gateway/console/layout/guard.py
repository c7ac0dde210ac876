"""Recognises the visitor of a page, and reads a form that comes from one of our pages.

Forms are urlencoded UTF-8 of limited size; other formats are refused.

The browser has one random token in a cookie. After sign-in the token is the key of a session;
before it, only the CSRF token is derived from it, as a digest.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlsplit
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway import texts
from gateway.console.layout.reader import Reader
from gateway.domain.accounts import sessions
from gateway.domain.accounts.sessions import Session
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.queued_mail import Facts
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.server.app_keys import CELLS, DB, IDS
from gateway.server.http import bodies
from gateway.server.http.client_address import CLIENT, Client
from gateway.server.installation import ACCOUNT_RULES, SITE
from gateway.server.web_origins import spelled
from outbox.database.transaction import Commits, Tx, belongs_to, commits
from outbox.durations import SECOND
from outbox.webhooks import Troubled, troubled

SAFE = frozenset({"GET", "HEAD"})
COUNTED = 100
"""The most webhooks in trouble that a page counts."""
DIGITS = 64
"""Of the CSRF token itself; behind them is the mark of the account."""

URLENCODED = "application/x-www-form-urlencoded"
MOST_FIELDS = 1_500


class Form:
    """The fields of a form."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """Return the first value of a field, or an empty text when it is missing."""
        return next(iter(self.all(name)), "")

    def pairs(self) -> Sequence[tuple[str, str]]:
        """Return all fields with their values, the values of a field together."""
        return [(name, value) for name, values in self._fields.items() for value in values]

    def all(self, name: str) -> Sequence[str]:
        """Return all values of a field."""
        return self._fields.get(name, ())


FORM = web.RequestKey("CONSOLE_FORM", Form)
"""The form of a request, also of one that is refused."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The visitor of a page; `fresh` means that the browser has no cookie yet."""

    token: str
    fresh: bool
    session: Session | None
    troubled: Sequence[Troubled] = ()
    """The owner's webhooks that need somebody, for a whole page."""

    @property
    def csrf(self) -> str:
        """The CSRF token for every form of this browser, and the mark of who filled it in."""
        token = hashlib.sha256(b"csrf\0" + self.token.encode()).hexdigest()
        return token if self.session is None else token + mark_of(self.session.owner_id)

    @property
    def actor(self) -> Actor:
        """The signed-in user. Raise unauthenticated when there is none."""
        if self.session is None:
            raise Refusal("unauthenticated", "Sign in first.")
        return Actor(self.session.owner_id, "session", zone=self.session.zone)


def mark_of(owner_id: str) -> str:
    """Return the mark of an account in its forms; it is no secret."""
    return hashlib.sha256(b"form\0" + owner_id.encode()).hexdigest()[:24]


def owner_mark(token: str) -> str:
    """Return the mark in the CSRF token of a form, an empty text without one."""
    return token[DIGITS:] if len(token) == DIGITS + 24 else ""


def client_of(request: web.Request) -> Client:
    """Return the client of the request, as trusted proxies report it."""
    client: Client = request[CLIENT]
    return client


def origin_of(request: web.Request) -> str:
    """Return the scheme and host of this console as the browser sees them."""
    client = client_of(request)
    return spelled(request.app[SITE].public_url or f"{client.scheme}://{client.host}")


def on_our_host(request: web.Request) -> bool:
    """Return whether the request names the host of public_url, if that is set."""
    public = request.app[SITE].public_url
    # The default port depends on the public scheme, not on the scheme between proxy and server.
    scheme = public.partition("://")[0]
    return not public or spelled(f"{scheme}://{client_of(request).host}") == spelled(public)


def cookie_name(request: web.Request) -> str:
    """Return the cookie's name; `__Host-` binds it to this host and requires https."""
    return "__Host-carteiro" if origin_of(request).startswith("https:") else "carteiro"


async def recognise(request: web.Request) -> SignedIn:
    """Return the visitor of a request; record from time to time that the session is in use."""
    token = request.cookies.get(cookie_name(request), "")
    if not 20 <= len(token) <= 100 or not token.isascii():
        return SignedIn(new_token(request), True, None)
    database = request.app[DB]
    shows = request.method in SAFE and "HX-Request" not in request.headers
    session, webhooks = await database.read(_known, token, COUNTED if shows else 0)
    if session is None:
        elsewhere = await request.app[CELLS].of_credential(token)
        if elsewhere is not None:
            raise elsewhere
    else:
        belongs_to(session.owner_id)
    if session is not None and session.stale(database.clock.wall()):
        await database.write(sessions.seen, session.id)
        # This is not what the visitor asks for.
        commits.set(Commits())
    return SignedIn(token, False, session, webhooks)


async def _known(tx: Tx, token: str, most: int) -> tuple[Session | None, Sequence[Troubled]]:
    """Return the session of a token and up to `most` webhooks of its owner in trouble.

    Every page has both, so that they are one read.
    """
    session = await sessions.find(tx, token)
    if session is None or not most:
        return session, ()
    return session, await troubled(tx, session.owner_id, most)


def reader_of(request: web.Request, visitor: SignedIn | None) -> Reader:
    """Return how the visitor reads: as the account says, else as the browser does."""
    session = visitor.session if visitor is not None else None
    language = session.language if session is not None else None
    if not language:
        language = texts.asked(request.headers.get("Accept-Language", ""))
    return Reader(texts.of(language), ZoneInfo(session.zone if session is not None else "UTC"))


def new_token(request: web.Request) -> str:
    """Return 256 random bits as text."""
    return base64.urlsafe_b64encode(request.app[IDS].token(32)).decode().rstrip("=")


def give_cookie(
    request: web.Request, response: web.StreamResponse, token: str, seconds: int | None
) -> None:
    """Set the browser's token, for `seconds` or until the browser closes (None)."""
    response.set_cookie(
        cookie_name(request), token, max_age=seconds, path="/", httponly=True, samesite="Lax",
        secure=origin_of(request).startswith("https:"),
    )  # fmt: skip


async def sign_in(
    request: web.Request, visitor: SignedIn, account: CheckedAccount, notice: Facts | None
) -> str:
    """Start a session with a new token, and end the previous session of this browser.

    `notice` are the facts of the mail about it, None without one. Raise unauthenticated when the
    account changed since its password was checked.
    """
    token = request.app[CELLS].marked(new_token(request), account.id)
    lifetime = request.app[ACCOUNT_RULES].session_seconds * SECOND
    agent = request.headers.get("User-Agent", "").encode("utf-8", "replace").decode()
    database = request.app[DB]
    await database.write(
        sessions.start, account, token, lifetime=lifetime,
        address=client_of(request).address, agent=agent, notice=notice,
    )  # fmt: skip
    if visitor.session is not None:
        await database.write(sessions.end, visitor.session.owner_id, visitor.session.id)
    return token


def elsewhere(request: web.Request) -> bool:
    """Return whether a browser says that a page of another site sent the request."""
    origin = request.headers.get("Origin")
    if origin is not None:
        return spelled(origin) != origin_of(request)
    return request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")


def inside(where: str) -> str:
    """Return `where` if it is an address of this console, else an empty text."""
    plain = where.isascii() and where.isprintable() and "\\" not in where
    return where if plain and where.startswith("/console/") else ""


def parts_in(request: web.Request, header: str) -> SplitResult:
    """Return the parts of the address in a header; they are empty when it has none."""
    try:
        return urlsplit(request.headers.get(header, ""))
    except ValueError:
        return urlsplit("")


def came_from(request: web.Request) -> str:
    """Return the page of this console that led here, an empty text when there is none."""
    parts = parts_in(request, "Referer")
    if spelled(f"{parts.scheme}://{parts.netloc}") != origin_of(request):
        return ""
    query = "&".join(part for part in parts.query.split("&") if not part.startswith("done="))
    return inside(f"{parts.path}?{query}" if query else parts.path)


async def form_of(request: web.Request, visitor: SignedIn) -> Form:
    """Return the fields of a form. Raise forbidden unless one of our pages sent it."""
    must_be_from_here(request)
    form = await read_form(request)
    request[FORM] = form
    must_have_token(visitor, form.text("csrf_token"))
    return form


async def read_form(request: web.Request) -> Form:
    """Read the form of a request.

    Raise unsupported_media_type, payload_too_large or validation_error.
    """
    name, charset = bodies.media_type(request.headers.get("Content-Type", ""))
    if name != URLENCODED or charset not in ("utf-8", "utf8"):
        raise Refusal("unsupported_media_type", f"Send the form as {URLENCODED} in UTF-8.")
    try:
        body = await bodies.plain(request)
    except Refusal as refusal:
        if refusal.code == "payload_too_large":
            raise _too_large() from None
        raise
    return parse_form(body)


def parse_form(body: bytes) -> Form:
    """Parse an urlencoded body. Raise payload_too_large or validation_error."""
    if body.count(b"&") >= MOST_FIELDS:
        raise _too_large()
    fields: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(body.decode(), keep_blank_values=True, errors="strict"):
            fields.setdefault(name, []).append(value)
    except UnicodeDecodeError:
        raise Refusal("validation_error", "The form must be encoded in UTF-8.") from None
    return Form(fields)


def _too_large() -> Refusal:
    return Refusal("payload_too_large", "error.too_large")


def must_be_from_here(request: web.Request) -> None:
    """Raise forbidden when another site has sent the request."""
    if elsewhere(request):
        raise Refusal("forbidden", "error.origin_help")


def must_have_token(visitor: SignedIn, token: str) -> None:
    """Raise forbidden unless this is the token of the visitor's forms."""
    if not hmac.compare_digest(token.encode("utf-8", "replace"), visitor.csrf.encode()):
        raise Refusal("forbidden", "error.csrf_help")

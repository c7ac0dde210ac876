"""Connect links: what an app may ask for, the consent, the exchange, and what attackers try."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest
from aiohttp import web
from msgspec import structs

from gateway.domain.accounts import sessions, users
from gateway.domain.webhooks import connecting
from gateway.domain.webhooks.connecting import challenge_of
from gateway.server.config import App, Config, Connect
from outbox import database
from outbox.database.transaction import Database, Row, Tx
from outbox.durations import DAY, MINUTE, SECOND
from outbox.ids import Ids
from tests.support.console import CONFIG, Guest, guest
from tests.support.failing import preceded
from tests.support.site import Site, Still, serving

COOKIE = "zappy"
EVENT = "contact.created"


def config_of(*apps: App) -> Config:
    """Return the configuration of the tests of the console, with these apps."""
    return structs.replace(CONFIG, connect=Connect(apps))


@dataclass
class Zappy:
    """The app at `origin`. `receiver` is the origin of its webhooks; `flows` are begun links."""

    origin: str
    receiver: str
    id: str = "zappy"
    carteiro: str = ""
    flows: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The cookie of a visitor → its state and verifier."""
    granted: list[Mapping[str, Any]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def redirect_uri(self) -> str:
        return f"{self.origin}/connected?from=carteiro"

    @property
    def app(self) -> App:
        return App(self.id, self.id.title(), (self.redirect_uri,), (self.receiver,))

    def begin(
        self, changed: Mapping[str, str | None] | None = None, visitor: str = "visitor"
    ) -> dict[str, str]:
        """Begin a flow of a visitor; return the fields of its link, some of them `changed`."""
        state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(32)
        self.flows[visitor] = state, verifier
        fields: dict[str, str | None] = {
            "response_type": "code", "client_id": self.id, "redirect_uri": self.redirect_uri,
            "state": state, "url": f"{self.receiver}/hooks/7", "events": EVENT,
            "code_challenge": challenge_of(verifier), "code_challenge_method": "S256",
            **(changed or {}),
        }  # fmt: skip
        return {name: value for name, value in fields.items() if value is not None}

    def link(self, visitor: str = "visitor") -> str:
        return f"/console/connect?{urlencode(self.begin(visitor=visitor))}"

    def proof(self, code: str, visitor: str = "visitor") -> dict[str, str]:
        """Return the fields that change a code for a secret."""
        return {
            "grant_type": "authorization_code", "code": code, "client_id": self.id,
            "redirect_uri": self.redirect_uri, "code_verifier": self.flows[visitor][1],
        }  # fmt: skip

    async def start(self, request: web.Request) -> web.StreamResponse:
        """Show a link to Carteiro to a visitor with a new session."""
        visitor = secrets.token_hex(8)
        link = self.link(visitor).replace("&", "&amp;")
        page = f'<!doctype html><title>Zappy</title><a href="{self.carteiro}{link}">Connect</a>'
        response = web.Response(text=page, content_type="text/html")
        response.set_cookie(COOKIE, visitor, httponly=True, samesite="Lax")
        return response

    async def connected(self, request: web.Request) -> web.StreamResponse:
        """Take the code when the state is that of this visitor's session."""
        state, _ = self.flows.get(request.cookies.get(COOKIE, ""), ("", ""))
        if request.query.get("state") != state or request.query.get("iss") != self.carteiro:
            self.refused.append(request.query.get("state", ""))
            return web.Response(status=400, text="Not your session.")
        if "error" in request.query:
            return web.Response(text=f"Not connected: {request.query['error']}.")
        proof = self.proof(request.query["code"], request.cookies[COOKIE])
        async with (
            aiohttp.ClientSession(self.carteiro) as http,
            http.post("/console/connect/token", data=proof) as answer,
        ):
            assert answer.status == 200, await answer.text()
            self.granted.append(await answer.json())
        return web.Response(text="Connected.")


async def _no_icon(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


@asynccontextmanager
async def zappy(receiver: str) -> AsyncIterator[Zappy]:
    """Run the app on loopback."""
    app = web.Application()
    runner = web.AppRunner(app)
    it = Zappy("", receiver)
    app.add_routes(
        [web.get("/", it.start), web.get("/connected", it.connected),
         web.get("/favicon.ico", _no_icon)]
    )  # fmt: skip
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        it.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield it
    finally:
        await runner.cleanup()


RECEIVER = "https://hooks.zappy.example"
PATH = "/console/connect"
TOKEN = f"{PATH}/token"


class Later(Still):
    """A wall clock that a test sets forward."""

    ahead = 0

    def wall(self) -> int:
        return super().wall() + self.ahead


@dataclass
class Scene:
    """A gateway that knows two apps, and their owner in a browser."""

    site: Site
    clock: Later
    zappy: Zappy
    other: Zappy
    maria: Guest

    async def code(self) -> str:
        """Allow what the app asks for; return its code."""
        return (await self.decide(self.zappy.begin()))["code"]

    async def decide(self, fields: Mapping[str, str], decision: str = "allow") -> dict[str, str]:
        """Press a button of the page; return what the app gets back."""
        link = f"{PATH}?{urlencode(fields)}"
        seen = await self.maria.submit(PATH, at=link, follow=False, decision=decision, **fields)
        assert seen.status == 303, seen.html
        return back_of(seen.headers["Location"], self.zappy, self.other)

    async def exchange(self, **fields: str) -> tuple[int, Any]:
        async with self.site.http.post(TOKEN, data=fields) as answer:
            assert answer.headers["Cache-Control"] == "no-store"
            return answer.status, await answer.json()

    async def webhooks(self) -> list[Row]:
        return await self.site.db.read(_rows, "select * from webhooks order by id")


async def _rows(tx: Tx, sql: str) -> list[Row]:
    return await tx.all(sql)


def back_of(location: str, *apps: Zappy) -> dict[str, str]:
    """Return the parameters of a redirect; it must lead to an app."""
    assert any(location.startswith(f"{app.redirect_uri}&") for app in apps), location
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


@pytest.fixture
async def scene(db_url: str) -> AsyncIterator[Scene]:
    clock = Later()
    db: Database = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    zappy = Zappy("https://zappy.example", RECEIVER)
    other = Zappy("https://other.example", "https://hooks.other.example", "other")
    try:
        async with serving(db, config_of(zappy.app, other.app)) as site, guest(site) as maria:
            await site.user()
            await maria.sign_in()
            yield Scene(site, clock, zappy, other, maria)
    finally:
        await db.close()


async def test_an_app_gets_its_webhook_with_the_consent_of_the_owner(scene: Scene) -> None:
    fields = scene.zappy.begin({"events": f"{EVENT},deal.created"})
    page = await scene.maria.get(f"{PATH}?{urlencode(fields)}")
    for said in ("Connect Zappy", RECEIVER, "/hooks/7", EVENT, "https://zappy.example"):
        assert said in page.html
    assert page.headers["X-Frame-Options"] == "DENY"
    policy = page.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://zappy.example" in policy
    back = await scene.decide(fields)
    assert (back["state"], back["iss"]) == (fields["state"], scene.site.url)
    # Until the app has proven itself there is no webhook, and no event goes out.
    assert await scene.webhooks() == []
    status, got = await scene.exchange(**scene.zappy.proof(back["code"]))
    assert status == 200
    [row] = await scene.webhooks()
    assert got["webhook_id"] == row["id"]
    assert got["events"] == [EVENT, "deal.created"]
    assert (row["url"], row["app"], row["description"]) == (fields["url"], "zappy", "Zappy")
    shown = await scene.maria.get(f"/console/webhooks/{row['id']}")
    assert shown.test_id("app") is not None
    assert "Zappy" in shown.html
    assert shown.link("Disconnect") == f"/console/webhooks/{row['id']}/delete"
    log = await scene.maria.get("/console/audit")
    assert "a connected app" in log.html
    [kept] = await scene.site.db.read(_rows, "select * from connect_codes")
    assert back["code"] not in str(dict(kept))


async def test_json_is_taken_like_a_form(scene: Scene) -> None:
    proof = scene.zappy.proof(await scene.code())
    async with scene.site.http.post(TOKEN, json=proof) as answer:
        assert answer.status == 200
        assert (await answer.json())["secret"].startswith("whsec_")


@pytest.mark.parametrize("ends", [sessions.end_all, users.disable])
async def test_a_session_that_ended_meanwhile_allows_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, ends: Callable[..., Awaitable[object]]
) -> None:
    [user], db = await scene.site.db.read(_rows, "select id from users"), scene.site.db
    preceded(monkeypatch, db, sessions.while_live, lambda: db.write(ends, user["id"]))
    fields = scene.zappy.begin()
    link = f"{PATH}?{urlencode(fields)}"
    seen = await scene.maria.submit(PATH, at=link, follow=False, decision="allow", **fields)
    assert (seen.status, "Location" in seen.headers) == (401, False)
    assert await db.read(_rows, "select * from connect_codes") == []


async def test_an_owner_may_refuse(scene: Scene) -> None:
    fields = scene.zappy.begin()
    back = await scene.decide(fields, "deny")
    assert (back["error"], back["state"]) == ("access_denied", fields["state"])
    assert await scene.site.db.read(_rows, "select * from connect_codes") == []


async def test_nobody_is_sent_to_an_address_that_is_not_the_apps(scene: Scene) -> None:
    token = (await scene.maria.get("/console/webhooks/new")).csrf
    wrong: list[dict[str, str | None]] = [{"client_id": "unknown"}, {"client_id": None}]
    wrong += [
        {"redirect_uri": uri}
        for uri in (
            "https://evil.example/connected?from=carteiro", "https://zappy.example/connected",
            "https://zappy.example/connected?from=carteiro&x=1",
            "https://zappy.example/connected/../x?from=carteiro",
            "https://ZAPPY.example/connected?from=carteiro",
            "https://zappy.example@evil.example/connected?from=carteiro",
            "https://other.example/connected?from=carteiro", None,
        )
    ]  # fmt: skip
    for changed in wrong:
        fields = scene.zappy.begin(changed)
        page = await scene.maria.get(f"{PATH}?{urlencode(fields)}", follow=False)
        assert (page.status, "Location" in page.headers) == (400, False), changed
        for decision in ("allow", "deny"):
            pairs = [("csrf_token", token), ("decision", decision), *fields.items()]
            done = await scene.maria.post(PATH, pairs, follow=False)
            assert (done.status, "Location" in done.headers) == (400, False), changed


async def test_a_fault_of_the_link_goes_back_to_the_app(scene: Scene) -> None:
    wrong: list[tuple[str, str | None]] = [
        ("state", None), ("code_challenge_method", "plain"), ("code_challenge_method", None),
        ("code_challenge", None), ("code_challenge", "short"), ("response_type", "token"),
        ("url", "https://evil.example/hooks/7"), ("url", f"{RECEIVER}@evil.example/"),
        ("url", f"{RECEIVER}:8443/"), ("url", None), ("events", "nothing.happened"),
        ("events", ""),
    ]  # fmt: skip
    for name, value in wrong:
        fields = scene.zappy.begin({name: value})
        seen = await scene.maria.get(f"{PATH}?{urlencode(fields)}", follow=False)
        back = back_of(seen.headers["Location"], scene.zappy)
        unsupported = name == "response_type"
        assert back["error"] == (
            "unsupported_response_type" if unsupported else "invalid_request"
        ), name
        assert back["error_description"]
        assert back.get("state") == fields.get("state")
        assert "code" not in back


async def test_a_field_that_is_there_twice_is_refused(scene: Scene) -> None:
    fields = scene.zappy.begin()
    link = f"{PATH}?{urlencode(fields)}"
    seen = await scene.maria.get(f"{link}&url=https://hooks.zappy.example/2", follow=False)
    assert back_of(seen.headers["Location"], scene.zappy)["error"] == "invalid_request"
    seen = await scene.maria.get(f"{link}&redirect_uri=https://evil.example/", follow=False)
    assert (seen.status, "Location" in seen.headers) == (400, False)


async def test_a_code_is_used_once_and_its_second_use_pauses_the_webhook(scene: Scene) -> None:
    proof = scene.zappy.proof(await scene.code())
    status, got = await scene.exchange(**proof)
    assert status == 200
    # Who has the code alone cannot stop the webhook.
    guess = {**proof, "code_verifier": "x" * 43}
    assert (await scene.exchange(**guess))[1]["error"] == "invalid_grant"
    [row] = await scene.webhooks()
    assert row["state"] == "active"
    status, again = await scene.exchange(**proof)
    assert (status, again["error"]) == (400, "invalid_grant")
    assert "secret" not in again
    [row] = await scene.webhooks()
    assert (row["id"], row["state"]) == (got["webhook_id"], "paused")


async def test_a_code_is_worth_nothing_without_its_flow(scene: Scene) -> None:
    code = await scene.code()
    proof = scene.zappy.proof(code)
    wrong: list[dict[str, str]] = [
        # The verifier of another visitor's flow: a code that was put into his session.
        {"code_verifier": "y" * 43},
        # The challenge itself, as with the method plain.
        {"code_verifier": challenge_of(proof["code_verifier"])},
        {"client_id": "other"},
        {"client_id": "other", "redirect_uri": scene.other.redirect_uri},
        {"redirect_uri": f"{scene.zappy.redirect_uri}&x=1"},
        {"code": code[:-1]},
    ]  # fmt: skip
    for changed in wrong:
        status, answer = await scene.exchange(**{**proof, **changed})
        assert (status, answer["error"]) == (400, "invalid_grant"), changed
    assert await scene.webhooks() == []
    assert (await scene.exchange(**proof))[0] == 200


async def test_a_code_ends_after_a_minute_and_a_duty_removes_it(scene: Scene) -> None:
    early, late = await scene.code(), await scene.code()
    proof = scene.zappy.proof(late)
    scene.clock.ahead = MINUTE - 20 * SECOND
    assert (await scene.exchange(**proof))[0] == 200
    scene.clock.ahead = MINUTE + SECOND
    status, answer = await scene.exchange(**{**proof, "code": early})
    assert (status, answer["error"]) == (400, "invalid_grant")
    assert len(await scene.webhooks()) == 1
    scene.clock.ahead = DAY
    assert await scene.site.db.write(connecting.EXPIRY.purge, 10) == 0
    scene.clock.ahead = DAY + 2 * MINUTE
    assert await scene.site.db.write(connecting.EXPIRY.purge, 10) == 2


async def test_an_account_that_was_disabled_meanwhile_gives_nothing(scene: Scene) -> None:
    proof = scene.zappy.proof(await scene.code())

    async def disable(tx: Tx) -> None:
        await tx.run("update users set disabled_at = 1")

    await scene.site.db.write(disable)
    assert (await scene.exchange(**proof))[1]["error"] == "invalid_grant"
    assert await scene.webhooks() == []


async def test_failed_exchanges_of_an_address_are_limited(scene: Scene) -> None:
    scene.zappy.begin()
    proof = scene.zappy.proof("guess")
    statuses = [(await scene.exchange(**proof))[0] for _ in range(11)]
    assert statuses == [400] * 10 + [429]


async def test_a_body_that_is_no_object_of_texts_is_an_invalid_request(scene: Scene) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (
        b'{"code": "\xff"}', b'{"\xff": "a"}', b'{"code": "\xed\xa0\x80"}', b'{"code": "\\ud800"}',
        b"\xff\xfe{\0}\0", b'{"code": ["a"]}', b'{"code": 1}', b"[" * 60_000, b"",
    ):  # fmt: skip
        async with scene.site.http.post(TOKEN, data=body, headers=headers) as answer:
            assert (answer.status, (await answer.json())["error"]) == (400, "invalid_request"), body


async def test_the_endpoint_takes_only_posts_of_texts(scene: Scene) -> None:
    assert (await scene.maria.get(TOKEN)).status == 405
    for body, kind in ((b"[]", "application/json"), (b"a=1&a=2", None), (b"x", "text/plain")):
        headers = {"Content-Type": kind or "application/x-www-form-urlencoded"}
        async with scene.site.http.post(TOKEN, data=body, headers=headers) as answer:
            assert answer.status in (400, 415)
            assert (await answer.json())["error"] == "invalid_request"
    proof = scene.zappy.proof(await scene.code())
    for changed, error in (
        ({"grant_type": "refresh_token"}, "unsupported_grant_type"),
        ({"code_verifier": "short"}, "invalid_request"),
        ({"code": ""}, "invalid_request"),
        ({"client_id": "é"}, "invalid_request"),
    ):
        status, answer = await scene.exchange(**{**proof, **changed})
        assert (status, answer["error"]) == (400, error), changed

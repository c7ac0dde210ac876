"""Signing in and out, sessions and their cookies, the first account."""

import asyncio
from typing import Any

import pytest

from gateway.domain.accounts import sessions, users
from gateway.server.config import Config, Server, load
from outbox.database.transaction import Database, Tx
from tests.support.console import Guest, guest
from tests.support.site import PASSWORD, Site, serving

HOME = "/console"
FIRST = "/console/first-account"
NEW: dict[str, Any] = {"name": "Ana", "email": "ana@example.com", "password": "a good password"}


async def test_sign_in_never_redirects_to_another_site(console: Site, nobody: Guest) -> None:
    """And its cookie is out of the reach of scripts and other sites."""
    await console.user()
    fields: dict[str, Any] = {"email": "MARIA@Example.com", "password": PASSWORD}
    for where, to in (
        ("https://evil.example/console/", HOME), ("//evil.example", HOME),
        ("/\\evil.example", HOME), ("/api/me", HOME), ("", HOME),
        ("/console/keys", "/console/keys"),
    ):  # fmt: skip
        answer = await nobody.submit("/console/sign-in", next=where, follow=False, **fields)
        assert (answer.status, answer.headers["Location"]) == (303, to)
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("carteiro=")
        for part in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=1209600"):
            assert part in cookie
        assert "Secure" not in cookie
        await nobody.submit("/console/sign-out", at="/console/keys")


async def test_a_wrong_password_and_an_unknown_email_look_alike(
    console: Site, nobody: Guest
) -> None:
    await console.user()
    for email, password in (
        ("maria@example.com", "wrong"), ("nobody@example.com", PASSWORD), ("a\0b@c.d", PASSWORD),
        # Trimmed it would be Maria's address, but trimming and normalising it takes too long.
        ("maria@example.com" + " " * users.LONGEST_EMAIL, PASSWORD),
    ):  # fmt: skip
        page = await nobody.sign_in(email, password)
        assert (page.status, "Incorrect email or password." in page.html) == (401, True)
        assert (await nobody.get(HOME)).path.startswith("/console/sign-in")


async def test_under_https_the_cookie_is_bound_to_the_host(db: Database) -> None:
    config = Config(server=Server(public_url="https://crm.example.com"))
    async with serving(db, config) as site, guest(site) as somebody:
        elsewhere = await somebody.get("/console/sign-in")
        assert elsewhere.status == 404
        assert (await somebody.get("/", follow=False)).status == 404
        page = await somebody.get("/console/sign-in", Host="crm.example.com")
        assert page.status == 200
        cookie = page.headers["Set-Cookie"]
        assert cookie.startswith("__Host-carteiro=")
        assert "Secure" in cookie
        assert "Domain" not in cookie


@pytest.mark.parametrize("public_url", ["http://CRM.example.com.:80/", ""])
async def test_every_spelling_of_the_public_url_is_accepted(db: Database, public_url: str) -> None:
    named = {
        "CARTEIRO_SERVER__PUBLIC_URL": public_url, "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
    }  # fmt: skip
    async with serving(db, load(None, named)) as site, guest(site) as somebody:
        for host, origin in (
            ("crm.example.com", "http://crm.example.com"),
            ("CRM.example.com:80", "http://crm.example.com"),
            ("crm.example.com.", "http://crm.example.com."),
        ):
            page = await somebody.get("/console/sign-in", Host=host)
            assert page.status == 200, host
            fields = [("csrf_token", page.csrf), ("email", "x@y.zz"), ("password", "wrong horse")]
            path = "/console/sign-in"
            answer = await somebody.post(path, fields, Host=host, Origin=origin)
            assert answer.status == 401, (host, origin)
            for wrong in ("http://crm.example.com:8080", "https://crm.example.com", "null"):
                answer = await somebody.post(path, fields, Host=host, Origin=wrong)
                assert answer.status == 403, (host, wrong)
        if public_url:
            for host in ("crm.example.com:8080", "other.example.com"):
                assert (await somebody.get("/console/sign-in", Host=host)).status == 404


@pytest.mark.parametrize("end", ["sign out", "lifetime", "disabled"])
async def test_a_session_ends_itself(console: Site, maria: Guest, end: str) -> None:
    stolen = {c.key: c.value for c in maria.http.cookie_jar}
    if end == "sign out":
        page = await maria.submit("/console/sign-out", at="/console/keys")
        assert (page.path.startswith("/console/sign-in"), "signed out" in page.html) == (True, True)
    elif end == "lifetime":
        await console.db.write(_expire)
    else:
        user = await console.db.read(users.by_email, "maria@example.com")
        assert user is not None
        await console.db.write(users.disable, user["id"])
    async with guest(console) as thief:
        thief.http.cookie_jar.update_cookies(stolen)
        assert (await thief.get(HOME)).path.startswith("/console/sign-in")
    assert (await maria.sign_in()).status == (401 if end == "disabled" else 200)


async def test_signing_out_everywhere_ends_the_others_too(console: Site, maria: Guest) -> None:
    async with guest(console) as other:
        await other.sign_in()
        assert (await other.get(HOME)).path == HOME
        page = await maria.get("/console/account")
        assert page.html.count('/end"') == 2
        await maria.submit("/console/account/sign-out-everywhere", at="/console/account")
        assert (await other.get(HOME)).path.startswith("/console/sign-in")
        assert (await maria.get(HOME)).path.startswith("/console/sign-in")


async def _expire(tx: Tx) -> None:
    await tx.run("update sessions set expires_at = $1", tx.now)


async def test_the_first_account_is_created_once(console: Site, nobody: Guest) -> None:
    assert await console.db.write(sessions.offer_first_account, "the-token")
    link = f"{FIRST}?token=the-token"
    short = await nobody.submit(FIRST, at=link, token="the-token", **NEW | {"password": "short"})
    assert short.status == 400
    assert "8 to 128" in short.html
    common = {"password": "trustno1"}
    weak = await nobody.submit(FIRST, at=link, token="the-token", **NEW | common)
    assert (weak.status, "This password is too common" in weak.html) == (400, True)
    form = (await nobody.get(link)).csrf
    fields = [("csrf_token", form), ("token", "the-token"), *NEW.items()]
    page = await nobody.post(FIRST, fields, Accept_Language="pt-BR")
    assert page.path == HOME
    # Its stages are in the language in which it was created.
    assert "Contato" in (await nobody.get("/console/settings/pipeline")).html
    assert "Ana" in page.html
    assert "has expired or was already used" in (await nobody.get(link)).html
    assert not await console.db.write(sessions.offer_first_account, "another")
    async with guest(console) as late:
        page = await late.submit(FIRST, at="/console/sign-in", token="the-token", **NEW)
        assert page.status == 403


async def test_two_links_at_once_create_one_account(console: Site) -> None:
    for token in ("one", "two"):
        assert await console.db.write(sessions.offer_first_account, token)
    async with guest(console) as a, guest(console) as b:
        first = await a.get(f"{FIRST}?token=one")
        second = await b.get(f"{FIRST}?token=two")
        pages = await asyncio.gather(
            a.post(FIRST, [("csrf_token", first.csrf), ("token", "one"), *NEW.items()]),
            b.post(
                FIRST,
                [("csrf_token", second.csrf), ("token", "two"),
                 *(NEW | {"email": "bea@example.com"}).items()],
            ),
        )  # fmt: skip
    assert sorted(page.status for page in pages) == [200, 403]


async def test_a_wrong_link_creates_no_account(console: Site, nobody: Guest) -> None:
    await console.db.write(sessions.offer_first_account, "right")
    page = await nobody.get(f"{FIRST}?token=wrong")
    assert "has expired or was already used" in page.html
    assert (await nobody.get("/console/first-account")).status == 200
    assert not await console.db.read(users.exist)

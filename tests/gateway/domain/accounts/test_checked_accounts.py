"""An account that changes while its password is checked, or while a form is on its way."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import argon2
import pytest

from gateway.domain.accounts import passwords, sessions, tokens, two_factor, users
from gateway.domain.accounts.users import CheckedAccount
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database, Row, Tx
from outbox.ids import digest_of
from tests.support.codes import code_of, enrol, hidden
from tests.support.console import CONFIG, Guest, Seen, guest
from tests.support.drain import rows
from tests.support.failing import preceded
from tests.support.held_hashes import Held
from tests.support.site import PASSWORD, Site, serving

TWO_FACTOR = "/console/account/two-factor"
KEYS = "/console/keys"
NEW = "outra senha bem longa"
STOLEN = "a senha do ladrao"
Change = Callable[[Site, str], Awaitable[object]]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    hasher = Held()
    monkeypatch.setattr(passwords, "HASHER", hasher)
    return hasher


@pytest.fixture
async def console(held: Held, db: Database) -> AsyncIterator[Site]:
    async with serving(db, CONFIG) as site:
        yield site


async def reset(site: Site, owner_id: str) -> None:
    """Do what a link for a forgotten password does."""

    async def unit(tx: Tx) -> None:
        await users.set_password(tx, owner_id, passwords.HASHER.hash(NEW))
        await sessions.end_all(tx, owner_id)

    await site.db.write(unit)


async def turned_off(site: Site, owner_id: str) -> None:
    """Disable the account, as an administrator does."""

    async def unit(tx: Tx) -> None:
        await users.disable(tx, owner_id)
        await sessions.end_all(tx, owner_id)

    await site.db.write(unit)


async def off_and_on(site: Site, owner_id: str) -> None:
    await turned_off(site, owner_id)
    await site.db.write(users.enable, owner_id)


async def readdressed(site: Site, owner_id: str) -> None:
    await site.db.write(users.set_email, owner_id, "ana@example.com")


async def rehashed(site: Site, owner_id: str) -> None:
    """Replace the hash by another one of the same password, as another sign-in does."""
    [user] = await site.db.read(rows, "select password_hash from users")
    again = passwords.HASHER.hash(PASSWORD)
    await site.db.write(users.rehash, owner_id, user["password_hash"], again)


async def signed_in_too(site: Site, owner_id: str) -> None:
    await site.db.write(
        tokens.add, CheckedAccount(owner_id, 1, None), text=tokens.make(site.db.ids), lifetime=60
    )


ENDING: tuple[Change, ...] = (reset, enrol, turned_off, off_and_on, readdressed)
HARMLESS: tuple[Change, ...] = (rehashed, signed_in_too)


async def access(site: Site) -> list[Row]:
    """Return what lets somebody in, beside what a change of the account itself has made."""
    found = []
    for table in ("sessions", "api_keys", "account_tokens", "connect_codes"):
        found += await site.db.read(rows, f"select * from {table}")
    return found


async def ask_token(site: Site) -> tuple[int, dict[str, Any]]:
    body = {"email": "maria@example.com", "password": PASSWORD}
    async with site.http.post("/api/auth/token", json=body) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize("change", [*ENDING, *HARMLESS])
async def test_a_sign_in_under_way_ends_with_a_change_of_the_account(
    console: Site, held: Held, change: Change
) -> None:
    owner_id, ends = await console.user(), change in ENDING
    status, body = await held.during(lambda: ask_token(console), lambda: change(console, owner_id))
    if ends:
        assert (status, body["code"]) == (401, "unauthenticated")
        assert not await console.db.read(rows, "select 1 from tokens")
    else:
        headers = {"Authorization": f"Bearer {body['token']}"}
        async with console.http.get("/api/me", headers=headers) as me:
            assert me.status == 200


@pytest.mark.parametrize("change", [*ENDING, *HARMLESS])
async def test_so_does_that_of_a_browser(console: Site, held: Held, change: Change) -> None:
    owner_id, ends = await console.user(), change in ENDING
    async with guest(console) as browser:
        page = await held.during(browser.sign_in, lambda: change(console, owner_id))
        assert page.path == ("/console/sign-in?done=sign_in_again" if ends else "/console")
        assert await access(console) == [] if ends else len(await access(console)) == 1
        assert (await browser.get(KEYS)).path.startswith("/console/sign-in") == ends


async def test_a_right_code_does_not_outlast_the_password_that_came_before(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner_id = await console.user()
    _, recovery = await enrol(console, owner_id)
    async with guest(console) as browser:
        asked = await browser.sign_in()
        fields = {
            "csrf_token": asked.csrf, "sign_in_token": hidden(asked.html, "sign_in_token"),
            "secret_recovery": recovery[0],
        }  # fmt: skip
        preceded(monkeypatch, console.db, sessions.start, lambda: reset(console, owner_id))
        page = await browser.post("/console/sign-in/code", [*fields.items()])
        assert page.path == "/console/sign-in?done=sign_in_again"
    # Two-factor authentication that was ended and set up again is another one.
    account = CheckedAccount(owner_id, 2, 1)
    ring = console.app[KEYRING]
    assert (await console.db.write(
        two_factor.check, ring, owner_id, recovery[1], {}, account
    )).result == "none"  # fmt: skip
    assert await access(console) == []


async def test_a_token_with_a_code_too(console: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    owner_id = await console.user()
    _, recovery = await enrol(console, owner_id)
    preceded(monkeypatch, console.db, tokens.add, lambda: reset(console, owner_id))
    body = {"email": "maria@example.com", "password": PASSWORD, "code": recovery[0]}
    async with console.http.post("/api/auth/token", json=body) as answer:
        assert (answer.status, (await answer.json())["code"]) == (401, "unauthenticated")


async def begin_two_factor(site: Site, browser: Guest) -> str:
    await browser.submit(f"{TWO_FACTOR}/start", at=TWO_FACTOR)
    [row] = await site.db.read(rows, "select * from two_factors")
    secret = site.app[KEYRING].open(bytes(row["secret"]), row["owner_id"])
    return code_of(secret, site.db.clock.wall())


@pytest.mark.parametrize("what", ["password", "two-factor"])
@pytest.mark.parametrize("change", [reset, off_and_on])
async def test_a_thief_changes_nothing_after_the_owner_has(
    console: Site, held: Held, change: Change, what: str
) -> None:
    """Somebody who knows the old password may not undo what ends his session."""
    owner_id = await console.user()
    async with guest(console) as thief:
        await thief.sign_in()
        path, fields = "/console/account/password", {"new": STOLEN, "again": STOLEN}
        if what == "two-factor":
            path, fields = TWO_FACTOR, {"secret_code": await begin_two_factor(console, thief)}
        sent = [
            ("csrf_token", (await thief.get(path)).csrf),
            ("current", PASSWORD),
            *fields.items(),
        ]

        async def act() -> Seen:
            return await thief.post(path, sent)

        page = await held.during(act, lambda: change(console, owner_id))
        assert page.status == 401
    [user] = await console.db.read(rows, "select * from users")
    new = NEW if change is reset else PASSWORD
    assert argon2.PasswordHasher().verify(user["password_hash"], new)
    assert user["two_factor_at"] is None
    found = await console.db.read(rows, "select kind from queued_mails")
    assert {row["kind"] for row in found} <= {"password_changed"}


@pytest.mark.parametrize("what", ["end", "codes"])
async def test_nor_does_he_end_two_factor_authentication(
    console: Site, held: Held, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner_id = await console.user()
    _, recovery = await enrol(console, owner_id)
    before = await console.db.read(rows, "select digest from recovery_codes order by digest")
    async with guest(console) as thief:
        asked = await thief.sign_in()
        fields = [
            ("csrf_token", asked.csrf), ("sign_in_token", hidden(asked.html, "sign_in_token")),
            ("secret_recovery", recovery[0]),
        ]  # fmt: skip
        await thief.post("/console/sign-in/code", fields)

        async def act() -> Seen:
            return await thief.submit(
                f"{TWO_FACTOR}/{what}", at=TWO_FACTOR, current=PASSWORD,
                secret_recovery=recovery[1],
            )  # fmt: skip

        page = await held.during(act, lambda: reset(console, owner_id))
        assert page.status in (400, 401)
    left = await console.db.read(rows, "select digest from recovery_codes order by digest")
    assert len(left) == len(before) - 1
    assert {row["digest"] for row in left} < {row["digest"] for row in before}


async def test_a_key_is_made_only_while_the_session_or_the_token_lasts(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner_id = await console.user()
    db = console.db
    for change in (reset, turned_off):
        async with guest(console) as browser:
            await browser.sign_in(password=PASSWORD)
            preceded(monkeypatch, db, sessions.while_live, lambda: change(console, owner_id))  # noqa: B023 - it runs within the round
            page = await browser.submit(KEYS, name="ERP", scopes="read", expires="")
            assert page.status == 401
        await db.write(users.enable, owner_id)
        hashed = passwords.HASHER.hash(PASSWORD)
        await db.write(users.set_password, owner_id, hashed)
        for headers in ("Authorization", "X-API-Key"):
            text = await console.token()
            sent = {"Authorization": f"Bearer {text}"} if headers == "Authorization" else {}
            key = await console.key(owner_id)
            sent = sent or {"X-API-Key": text, "Authorization": f"Bearer {key}"}
            async with console.http.post("/api/keys", json={"name": "x"}, headers=sent) as made:
                assert made.status == 201
            # Another node remembers it for a moment.
            await db.write(tokens.revoke, digest_of(text))
            async with console.http.post("/api/keys", json={"name": "x"}, headers=sent) as late:
                assert (late.status, (await late.json())["code"]) == (401, "unauthenticated")
        await db.write(lambda tx: tx.run("delete from api_keys"))
    assert await access(console) == []

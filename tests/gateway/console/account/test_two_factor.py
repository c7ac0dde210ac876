"""Two-factor authentication in the console: set up, sign in, recover, turn off, be required."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from gateway.domain.accounts import two_factor, users
from gateway.server.app_keys import KEYRING
from gateway.server.config import Auth
from outbox.database.transaction import Database
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.support.codes import code_of, enrol, hidden, shown_codes
from tests.support.console import CONFIG, Guest, Seen, guest
from tests.support.drain import rows
from tests.support.site import PASSWORD, Site, serving

PAGE = "/console/account/two-factor"
CODE = "/console/sign-in/code"


async def mails(db: Database) -> list[str]:
    return [
        row["kind"]
        for row in await db.read(rows, "select kind from queued_mails order by created_at")
    ]


async def second(browser: Guest, page: Seen, code: str, **more: str) -> Seen:
    """Send the code on the page that asks for it."""
    fields = {"sign_in_token": hidden(page.html, "sign_in_token"), "secret_code": code, **more}
    return await browser.post(CODE, [("csrf_token", page.csrf), *fields.items()])


async def begun(site: Site) -> tuple[str, bytes, list[str]]:
    """Return an account with two-factor authentication."""
    owner_id = await site.user()
    return owner_id, *await enrol(site, owner_id)


async def rewind(db: Database, owner_id: str) -> None:
    """Make the code of this step usable again."""
    await db.write(
        lambda tx: tx.run("update two_factors set last_step = 0 where owner_id = $1", owner_id)
    )


async def test_it_is_set_up_used_renewed_and_turned_off(console: Site, maria: Guest) -> None:
    db = console.db
    async with guest(console) as elsewhere:
        await elsewhere.sign_in()
        token = await console.token()
        page = await maria.submit(f"{PAGE}/start", at=PAGE)
        assert "<svg" in page.html
        assert "otpauth://totp/Carteiro:maria%40example.com?" in page.html
        [row] = await db.read(rows, "select * from two_factors")
        secret = console.app[KEYRING].open(bytes(row["secret"]), row["owner_id"])
        right = code_of(secret, db.clock.wall())
        for current, code, fault in (
            ("wrong", right, "The current password is wrong."),
            (PASSWORD, "000000" if right != "000000" else "1", "wrong or was already used"),
        ):
            refused = await maria.submit(PAGE, current=current, secret_code=code)
            assert (refused.status, fault in refused.html) == (400, True)
        page = await maria.submit(PAGE, current=PASSWORD, secret_code=right)
        recovery = shown_codes(page.html)
        assert len(recovery) == 10
        assert not shown_codes((await maria.get(PAGE)).html)
        # What began with a password alone has ended.
        assert (await elsewhere.get(PAGE)).path.startswith("/console/sign-in")
        async with console.http.get("/api/me", headers={"Authorization": f"Bearer {token}"}) as me:
            assert me.status == 401
        # The code that has set it up is used.
        asked = await elsewhere.sign_in()
        assert (asked.status, asked.path) == (200, "/console/sign-in")
        assert (await second(elsewhere, asked, right)).status == 401
        assert (await elsewhere.get(PAGE)).path.startswith("/console/sign-in")
        assert (
            await second(elsewhere, asked, "", secret_recovery=recovery[0].upper())
        ).status == 200
        assert "Unused recovery codes" in (await elsewhere.get(PAGE)).html
        await rewind(db, row["owner_id"])
        page = await maria.submit(f"{PAGE}/codes", at=PAGE, current=PASSWORD, secret_code=right)
        assert len({*shown_codes(page.html), *recovery}) == 20
        wrong = await maria.submit(
            f"{PAGE}/end", at=PAGE, current=PASSWORD, secret_recovery=recovery[1]
        )
        assert wrong.status == 400
        page = await maria.submit(
            f"{PAGE}/end", at=PAGE, current=PASSWORD, secret_recovery=shown_codes(page.html)[0]
        )
        assert "Two-factor authentication is off." in page.html
    assert (await elsewhere_signs_in(console)).path == "/console"
    assert await mails(db) == [
        "two_factor_on", "recovery_code_used", "recovery_codes_new", "recovery_code_used",
        "two_factor_off",
    ]  # fmt: skip
    audited = await db.read(
        rows, "select action, fields from audit where resource = 'two-factor' order by id"
    )
    assert [(row["action"], row["fields"]) for row in audited] == [
        ("created", ""), ("updated", "recoveryCodes"), ("updated", "recoveryCodes"),
        ("updated", "recoveryCodes"), ("deleted", ""),
    ]  # fmt: skip


async def elsewhere_signs_in(site: Site) -> Seen:
    async with guest(site) as somebody:
        return await somebody.sign_in()


@pytest.mark.parametrize("kind", ["app", "recovery"])
async def test_of_one_code_sent_many_times_at_once_one_is_right(console: Site, kind: str) -> None:
    owner_id, secret, recovery = await begun(console)
    db, ring = console.db, console.app[KEYRING]
    code = recovery[0] if kind == "recovery" else code_of(secret, db.clock.wall(), 1)
    results = await asyncio.gather(
        *(db.write(two_factor.check, ring, owner_id, code, {}) for _ in range(8))
    )
    assert [one.result for one in results].count("right") == 1


async def test_wrong_codes_wait_and_tell_the_account_but_a_recovery_code_passes(
    console: Site,
) -> None:
    owner_id, secret, recovery = await begun(console)
    db, ring = console.db, console.app[KEYRING]
    right = code_of(secret, db.clock.wall(), 1)
    wrong = f"{(int(right) + 5) % 1_000_000:06}"
    for _ in range(two_factor.FAILING):
        assert (await db.write(two_factor.check, ring, owner_id, wrong, {})).result == "wrong"
    assert await db.write(two_factor.check, ring, owner_id, right, {}) == ("wait", 30)
    assert "codes_failing" in await mails(db)
    async with guest(console) as browser:
        asked = await browser.sign_in()
        slow = await second(browser, asked, right)
        assert (slow.status, slow.headers["Retry-After"]) == (429, "30")
        assert (await second(browser, asked, "", secret_recovery=recovery[0])).path == "/console"


async def test_a_code_that_no_key_can_check_is_not_counted_as_wrong(console: Site) -> None:
    owner_id, secret, recovery = await begun(console)
    db, ring = console.db, console.app[KEYRING]
    code = code_of(secret, db.clock.wall(), 1)
    other = parse_keys(new_key_line(db.ids, db.clock.wall()), db.ids, "other keys")
    for _ in range(two_factor.FAILING + 1):
        assert await db.write(two_factor.check, other, owner_id, code, {}) == ("wrong", 0)
    assert "codes_failing" not in await mails(db)
    assert await db.write(two_factor.check, ring, owner_id, code, {}) == ("right", 0)
    found = await db.write(two_factor.check, other, owner_id, recovery[0], {})
    assert found == ("right", 0)


async def test_the_second_step_belongs_to_one_browser_and_to_the_account_as_it_was(
    console: Site,
) -> None:
    owner_id, secret, _ = await begun(console)
    db = console.db
    code = code_of(secret, db.clock.wall(), 1)
    async with guest(console) as one, guest(console) as other:
        asked = await one.sign_in()
        stolen = hidden(asked.html, "sign_in_token")
        page = await other.get("/console/sign-in")
        for token in (stolen, "", "AAAA", "é", stolen[:-4]):
            fields = [("csrf_token", page.csrf), ("sign_in_token", token), ("secret_code", code)]
            assert (await other.post(CODE, fields)).path == "/console/sign-in?done=sign_in_again"
        await db.write(users.set_password, owner_id, "-")
        assert (await second(one, asked, code)).path == "/console/sign-in?done=sign_in_again"
        assert (await one.post(CODE, [("secret_code", code)])).status == 403


@pytest.fixture
async def strict(db: Database) -> AsyncIterator[Site]:
    """A console that requires two-factor authentication."""
    async with serving(db, replace(CONFIG, auth=Auth(require_two_factor=True))) as site:
        yield site


async def test_where_it_is_required_nothing_else_opens_before(strict: Site) -> None:
    owner_id = await strict.user()
    async with guest(strict) as browser:
        assert (await browser.sign_in()).path == PAGE
        for path in ("/console", "/console/keys", "/console/account/password"):
            assert (await browser.get(path)).path == PAGE
        part = await browser.get("/console/contacts", follow=False, HX_Request="true")
        assert (part.status, part.headers["HX-Redirect"]) == (403, PAGE)
        assert (
            await browser.submit("/console/keys", at=PAGE, name="k", scopes=["read"])
        ).path == PAGE
        assert not await strict.db.read(rows, "select 1 from api_keys")
        async with strict.http.post("/api/auth/token", json=SIGN_IN) as answer:
            assert (answer.status, (await answer.json())["code"]) == (403, "forbidden")
        await browser.submit(f"{PAGE}/start", at=PAGE)
        [row] = await strict.db.read(rows, "select * from two_factors")
        secret = strict.app[KEYRING].open(bytes(row["secret"]), owner_id)
        code = code_of(secret, strict.db.clock.wall())
        await browser.submit(PAGE, current=PASSWORD, secret_code=code)
        assert (await browser.get("/console/keys")).path == "/console/keys"
        assert (await browser.submit(f"{PAGE}/end", at=PAGE, current=PASSWORD)).status == 403


SIGN_IN = {"email": "maria@example.com", "password": PASSWORD}


async def test_a_token_needs_the_code_too(console: Site) -> None:
    _, secret, recovery = await begun(console)
    code = code_of(secret, console.db.clock.wall(), 1)
    for sent, status, detail in (
        (None, 401, "required"), ("abc", 401, "invalid"),
        (code, 200, None), (code, 401, "invalid"), (recovery[3], 200, None),
        (recovery[3], 401, "invalid"),
    ):  # fmt: skip
        body: dict[str, Any] = SIGN_IN if sent is None else {**SIGN_IN, "code": sent}
        async with console.http.post("/api/auth/token", json=body) as answer:
            told = await answer.json()
        assert answer.status == status, (sent, told)
        if detail is None:
            assert set(told) == {"token", "tokenType", "expiresIn", "expiresAt"}
        else:
            assert (told["code"], told["details"][0]["code"]) == ("unauthenticated", detail)
    async with console.http.post("/api/auth/token", json={**SIGN_IN, "password": "x"}) as answer:
        assert "details" not in await answer.json()

"""Tests sign-in under attack: limits by address, network and account, and metrics."""

import asyncio

import pytest

from gateway.domain.accounts import api_keys, passwords, sessions, tokens
from gateway.domain.accounts.sign_in import DELAYS
from gateway.domain.accounts.users import CheckedAccount
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Row, Tx
from tests.support.console import guest
from tests.support.rest import UNLIMITED
from tests.support.site import PASSWORD, Site, serving

EMAIL = "maria@example.com"
FREE = DELAYS.count(0.0)
KEYS_MOST = 5


async def token(
    site: Site, email: str = EMAIL, password: str = PASSWORD, address: str = "192.0.2.1"
) -> tuple[int, str]:
    """Sign in from an address behind the trusted loopback proxy; return status and error."""
    body, behind = {"email": email, "password": password}, {"X-Forwarded-For": address}
    async with site.http.post("/api/auth/token", json=body, headers=behind) as answer:
        answered = await answer.json()
        return answer.status, str(answered.get("error"))


async def test_wrong_passwords_delay_every_client_of_an_account(still: Database) -> None:
    async with serving(still) as site:
        await site.user()
        for email in (EMAIL, "nobody@example.com"):
            tries = [await token(site, email, "wrong", f"203.0.{n}.1") for n in range(FREE + 2)]
            assert [status for status, _ in tries] == [401] * FREE + [429] * 2
            # The right password is not checked, because the response would reveal it.
            assert (await token(site, email, PASSWORD, "203.0.113.1"))[0] == 429
        assert (await token(site, "rui@example.com", PASSWORD, "203.0.113.1"))[0] == 401


async def test_a_hash_of_an_earlier_release_is_replaced_at_the_sign_in(db: Database) -> None:
    typed, composed = "cafe\u0301 com leite", "caf\u00e9 com leite"

    async def as_before(tx: Tx) -> None:
        hashed = passwords.HASHER.hash(typed)
        await tx.run("update users set password_hash = $1", hashed)

    async with serving(db, UNLIMITED) as site:
        await site.user()
        await db.write(as_before)
        for password, status in ((composed, 401), (typed, 200), (composed, 200), (typed, 200)):
            assert (await token(site, EMAIL, password))[0] == status


async def test_networks_are_limited_too(still: Database) -> None:
    async with serving(still, Config(limits=Limits(sign_in_per_minute=1))) as site:
        for pattern, most in (
            ("203.0.113.{}", 10), ("2001:db8:0:{:x}::1", 3), ("2001:db8:1:{:x}00::1", 10),
        ):  # fmt: skip
            answers = [
                await token(site, f"{n}@{most}.example", "wrong", pattern.format(n))
                for n in range(most + 2)
            ]
            assert [status for status, _ in answers] == [401] * most + [429] * 2, pattern
        assert (await token(site, "x@example.com", "wrong", "198.51.100.1"))[0] == 401


@pytest.mark.slow
async def test_parallel_sign_ins_revoke_the_oldest_session_and_token(db: Database) -> None:
    async with serving(db, UNLIMITED) as site:
        account = CheckedAccount(await site.user(), 1, None)
        given = [await site.token() for _ in range(3)]
        given += [tokens.make(db.ids) for _ in range(tokens.MOST)]
        more = range(sessions.MOST + 8)
        await asyncio.gather(
            *(db.write(tokens.add, account, text=text, lifetime=60) for text in given[3:]),
            *(
                db.write(sessions.start, account, f"token {n}", lifetime=60, address="", agent="")
                for n in more
            ),
        )
        statuses = []
        for text in (given[0], given[-1]):
            headers = {"Authorization": f"Bearer {text}"}
            async with site.http.get("/api/me", headers=headers) as answer:
                statuses.append(answer.status)
        assert statuses == [401, 200]
        assert await db.read(_count, "tokens") == tokens.MOST == 20
        assert await db.read(_count, "sessions") == sessions.MOST


@pytest.mark.slow
async def test_parallel_creates_respect_the_limit_of_keys(db: Database) -> None:
    config = Config(limits=Limits(keys_per_owner=KEYS_MOST))
    async with serving(db, config) as site:
        user_id = await site.user()
        headers = {"Authorization": f"Bearer {await site.token()}"}

        async def make() -> tuple[int, str]:
            body = {"name": "Zapier"}
            async with site.http.post("/api/keys", json=body, headers=headers) as answer:
                answered = await answer.json()
                return answer.status, str(answered.get("code") or answered["id"])

        answers = await asyncio.gather(*(make() for _ in range(KEYS_MOST * 3)))
        created = [text for status, text in answers if status == 201]
        assert len(created) == KEYS_MOST
        assert {a for a in answers if a[0] != 201} == {(409, "conflict")}
        async with guest(site) as browser:
            await browser.sign_in()
            page = await browser.submit("/console/keys", name="one more", scopes=["read"])
            assert page.status == 409
            assert "revoke one first" in page.html
        # Revoked and expired keys neither count nor fill the table.
        for _ in range(3):
            for key_id in created:
                await db.write(api_keys.revoke, user_id, key_id)
            created = [(await make())[1] for _ in range(KEYS_MOST)]
        assert (await make())[0] == 409
        assert await db.read(_count, "api_keys") <= 2 * KEYS_MOST + 1


async def _count(tx: Tx, table: str) -> int:
    row: Row | None = await tx.one(f"select count(*) as n from {table}")
    assert row is not None
    return int(row["n"])

"""Signing up, in and out of a store: cookies, tokens, and what is refused."""

import asyncio
import re
from typing import Any

import pytest

from gateway.domain.accounts import passwords
from gateway.domain.storefront.visitors import customer_sessions
from outbox.database.transaction import Tx
from tests.support.shop import Answer, Browser, Shop

ANA = {"name": "Ana Souza", "email": "Ana@Example.com", "password": "segredo-1"}
USER = "client(hostname: $h) { store { name } user { name email phone emailVerified } }"


async def sign_up(browser: Browser, **values: Any) -> Answer:
    return await browser.do("clientSignup", "token user { id name email }", **(ANA | values))


async def log_in(browser: Browser, email: str = "ana@example.com", password: str = "") -> Answer:
    return await browser.do(
        "clientLogin", "token user { email }", email=email, password=password or ANA["password"]
    )


async def user_of(browser: Browser) -> Any:
    return (await browser.ask(USER))["client"]["user"]


def attributes(line: str) -> dict[str, str]:
    """Return the attributes of a Set-Cookie header by lower-case name."""
    pairs = (part.strip().partition("=") for part in line.split(";")[1:])
    return {name.lower(): value for name, _, value in pairs}


@pytest.mark.parametrize(
    ("same_site", "scheme", "expected"),
    [
        ("lax", "https", {"samesite": "Lax", "secure": ""}),
        ("none", "https", {"samesite": "None", "secure": ""}),
        ("lax", "http", {"samesite": "Lax"}),
        ("none", "http", {"samesite": "Lax"}),
    ],
)
async def test_cookies_attribute_by_attribute(
    shop: Shop, same_site: str, scheme: str, expected: dict[str, str]
) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"cookieSameSite": same_site})).status == 200
    common = {"path": "/", "httponly": "", **expected}
    proxy: dict[str, Any] = {"X_Forwarded_Proto": scheme, "X_Forwarded_For": "203.0.113.7"}
    document = (
        "mutation ($input: ClientSignupMutationInput!) { clientSignup(input: $input) { token } }"
    )
    values = {"input": {"hostname": shop.hostname, **ANA}}
    made = await shop.browser().send(document, values, **proxy)
    assert set(made.cookies) == {"authJwtClient", "cartSession"}
    for line in made.cookies.values():
        assert attributes(line) == {**common, "max-age": "2592000"}
    token = made.data["clientSignup"]["token"]
    document = (
        "mutation ($input: ClientLogoutMutationInput!) { clientLogout(input: $input) { success } }"
    )
    values = {"input": {"hostname": shop.hostname}}
    left = await shop.browser().send(document, values, Authorization=f"Bearer {token}", **proxy)
    assert set(left.cookies) == {"authJwtClient", "cartSession"}
    for line in left.cookies.values():
        assert attributes(line) == {**common, "max-age": "0"}
        assert re.match(r'\w+=("")?;', line)


async def test_signing_out_ends_the_session_at_once(shop: Shop) -> None:
    browser, other = shop.browser(), shop.browser()
    token = (await sign_up(browser)).data["clientSignup"]["token"]
    query = f'{{ client(hostname: "{shop.hostname}") {{ user {{ name }} }} }}'
    header: dict[str, Any] = {"Authorization": f"Bearer {token}"}
    assert (await other.send(query, **header)).data["client"]["user"] is not None
    assert (await browser.do("clientLogout", "success")).data == {"clientLogout": {"success": True}}
    assert await user_of(browser) is None
    assert (await other.send(query, **header)).code == "INVALID_TOKEN"
    # As a cookie it makes a visitor, because browsers keep cookies.
    found = await other.send(query, Cookie=f"authJwtClient={token}")
    assert found.data == {"client": {"user": None}}
    # Signing out again, and signing in, work with the old header.
    for document in ("clientLogout", "clientLogin"):
        values = {"input": {"hostname": shop.hostname}}
        if document == "clientLogin":
            values["input"] |= {"email": ANA["email"], "password": ANA["password"]}
        kind = document[0].upper() + document[1:]
        text = (
            f"mutation ($input: {kind}MutationInput!)"
            f" {{ {document}(input: $input) {{ clientMutationId }} }}"
        )
        assert "errors" not in (await other.send(text, values, **header)).body


async def test_two_sign_ups_at_once_make_one_account(shop: Shop) -> None:
    answers = await asyncio.gather(
        *(sign_up(shop.browser(), email=f"{' ' * n}ana@example.com") for n in range(6))
    )
    codes = sorted(a.code if "errors" in a.body else "made" for a in answers)
    assert codes == ["EMAIL_ALREADY_EXISTS"] * 5 + ["made"]
    contacts = (await shop.owner.get("/api/contacts")).body
    assert contacts["total"] == 1


async def test_an_email_is_one_account_in_all_its_spellings(shop: Shop) -> None:
    for email, code in (
        ("ana@exämple.de", ""), ("ana@xn--exmple-cua.de", "EMAIL_ALREADY_EXISTS"),
        ("ANA@EXÄMPLE.DE", "EMAIL_ALREADY_EXISTS"), ("straße@x.co", ""), ("strasse@x.co", ""),
        ("STRAßE@x.co", "EMAIL_ALREADY_EXISTS"),
    ):  # fmt: skip
        made = await sign_up(shop.browser(), email=email)
        assert (made.code if "errors" in made.body else "") == code, email
    assert (await log_in(shop.browser(), "Ana@xn--exmple-cua.de")).data
    refused = await sign_up(shop.browser(), email="ana\u200b@example.com")
    assert refused.code == "BAD_USER_INPUT"
    assert "U+200B ZERO WIDTH SPACE" in refused.body["errors"][0]["message"]


async def test_a_password_of_an_earlier_release_is_known_by_all_its_spellings_afterwards(
    shop: Shop,
) -> None:
    await sign_up(shop.browser())
    typed, composed = "cafe\u0301 com leite", "caf\u00e9 com leite"

    async def as_before(tx: Tx) -> None:
        await tx.run("update customers set password_hash = $1", passwords.HASHER.hash(typed))

    await shop.db.write(as_before)
    for password, right in ((composed, False), (typed, True), (composed, True), (typed, True)):
        assert ("errors" not in (await log_in(shop.browser(), password=password)).body) is right
    for password in ("segredo\u200b1", "\ufeffsegredo"):
        refused = await sign_up(shop.browser(), email="bia@example.com", password=password)
        assert refused.code == "BAD_USER_INPUT"
        assert "without this character: U+" in refused.body["errors"][0]["message"]


async def test_escapes_of_a_document_reach_no_database(shop: Shop) -> None:
    """JSON refuses U+0000 and lone surrogates; an escape in a document is read after it."""
    browser = shop.browser()
    made = f'clientSignup(input: {{hostname: "{shop.hostname}", name: "Ana"'
    asked = f'clientLogin(input: {{hostname: "{shop.hostname}"'
    for document, code in (
        (f'{made}, email: "a@b.example", password: "abc\\u0000def"}})', "BAD_USER_INPUT"),
        (f'{made}, email: "a\\u0000@b.example", password: "abcdef"}})', "BAD_USER_INPUT"),
        (f'{asked}, email: "a\\u0000", password: "abcdef"}})', "INVALID_CREDENTIALS"),
        (f'{asked}, email: "a@b.example", password: "abc\\u0000"}})', "INVALID_CREDENTIALS"),
    ):
        answer = await browser.send(f"mutation {{ {document} {{ token }} }}")
        assert answer.status == 200
        assert answer.code == code, document


async def test_a_sign_up_reaches_the_owners_contacts(shop: Shop) -> None:
    await sign_up(shop.browser(), phone="11 98888-7777", acceptsMarketing=True)
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    assert contact["name"] == "Ana Souza"
    assert contact["email"] == "Ana@Example.com"
    assert contact["tags"] == ["customer"]
    assert contact["source"] == "storefront"
    assert contact["consent"] is True
    assert [name for name, _ in await shop.api.events()] == ["contact.created"]


async def test_a_session_is_of_one_store(shop: Shop) -> None:
    browser = shop.browser()
    token = (await sign_up(browser)).data["clientSignup"]["token"]
    other = {"hostname": "other.example", "name": "Other"}
    assert (await shop.owner.post("/api/stores", other)).status == 201
    query = '{ client(hostname: "other.example") { user { name } } }'
    assert (await browser.send(query)).data == {"client": {"user": None}}
    header: dict[str, Any] = {"Authorization": f"Bearer {token}"}
    assert (await shop.browser().send(query, **header)).code == "INVALID_TOKEN"


async def test_sessions_are_bounded_and_expire(shop: Shop) -> None:
    await sign_up(shop.browser())
    browsers = [shop.browser() for _ in range(customer_sessions.MOST + 2)]
    for browser in browsers:
        assert (await log_in(browser)).data
    assert await user_of(browsers[1]) is None
    assert await user_of(browsers[2]) is not None

    async def expire(tx: Tx) -> int:
        await tx.run("update customer_sessions set expires_at = $1", tx.now)
        return await customer_sessions.EXPIRY.purge(tx, 5)

    assert await shop.db.write(expire) == 5
    assert await user_of(browsers[-1]) is None

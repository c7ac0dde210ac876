"""The documented operations of customers, as they are written."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.server.config import Config, Mail
from outbox.database.transaction import Database
from tests.gateway.graphql.test_identity import LIMITS, LOOPBACK
from tests.gateway.graphql.test_mails import token_in
from tests.support.issuer import CLIENT, Issuer, issuing
from tests.support.mailbox import Mailbox, mailbox
from tests.support.operations import operation
from tests.support.rest import RestApi
from tests.support.shop import Browser, Shop, open_shop
from tests.support.site import serving

Place = tuple[Shop, Issuer, Mailbox]


pytestmark = pytest.mark.usefixtures("duties_look_often")


@pytest.fixture
async def place(db: Database) -> AsyncIterator[Place]:
    """A store with an identity provider and mail."""
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(issuing())
        box = await stack.enter_async_context(mailbox())
        mail = Mail(
            host="127.0.0.1", port=box.port, security="none", from_address="shop@example.com"
        )
        config = Config(limits=LIMITS, egress=LOOPBACK, mail=mail)
        site = await stack.enter_async_context(serving(db, config))
        idps = [{"issuer": issuer.url, "clientIds": [CLIENT], "trustedDomains": ["example.com"]}]
        shop = await open_shop(RestApi(site), idps=idps)
        stack.push_async_callback(shop.close)
        yield shop, issuer, box


async def run(browser: Browser, name: str, **placeholders: str) -> Any:
    answer = await browser.send(*operation(name, **placeholders))
    return answer.data[name]


async def test_the_life_of_an_account(place: Place) -> None:
    shop, _, box = place
    browser = shop.browser()
    assert await run(browser, "client") == {
        "store": {"name": "Coffee Shop"}, "user": None, "addresses": [],
    }  # fmt: skip
    made = await run(browser, "clientSignup")
    assert made["token"].count(".") == 2
    assert made["user"] == {
        "id": made["user"]["id"], "name": "Maria da Silva", "email": "maria@example.com",
    }  # fmt: skip
    token = token_in(await box.next(), "https://shop.example/verify-email")
    assert await run(browser, "clientVerifyEmail", token=token) == {"success": True}
    assert (await run(browser, "clientLogin"))["user"] == made["user"]
    changed = await run(browser, "clientUpdate")
    assert changed == {"user": {"name": "Maria Souza", "phone": None, "acceptsMarketing": False}}
    address = (await run(browser, "clientAddressSave"))["address"]
    assert address["complement"] == "ap 42"
    found = await run(browser, "client")
    assert found["user"]["emailVerified"] is True
    assert [one["cep"] for one in found["addresses"]] == ["01310200"]
    exported = json.loads((await run(browser, "clientExportData"))["data"])
    assert exported["account"]["name"] == "Maria Souza"
    deleted = await run(browser, "clientAddressDelete", addressId=address["id"])
    assert deleted == {"success": True}
    assert await run(browser, "clientLogout") == {"success": True}
    assert (await run(browser, "client"))["user"] is None
    await run(browser, "clientLogin")
    assert await run(browser, "clientDeleteAccount") == {"success": True}
    refused = await browser.send(*operation("clientLogin"))
    assert refused.code == "INVALID_CREDENTIALS"


async def test_new_passwords(place: Place) -> None:
    shop, _, box = place
    browser = shop.browser()
    await run(browser, "clientSignup")
    assert (await run(browser, "clientChangePassword"))["token"].count(".") == 2
    refused = await browser.send(*operation("clientLogin"))
    assert refused.code == "INVALID_CREDENTIALS"
    assert await run(browser, "clientRequestPasswordReset") == {"success": True}
    token = token_in(await box.next(2), "https://shop.example/reset-password")
    assert await run(browser, "clientResetPassword", token=token) == {"success": True}


async def test_identity_providers(place: Place) -> None:
    shop, issuer, _ = place
    token = issuer.token(email="maria@example.com", name="Maria da Silva")
    first = await run(shop.browser(), "clientIdpSignup", idToken=token)
    second = await run(shop.browser(), "clientIdpLogin", idToken=token)
    assert first["user"] == second["user"]
    assert first["user"]["name"] == "Maria da Silva"
    browser = shop.browser()
    answer = await browser.send(*operation("clientSignup"))
    assert answer.code == "EMAIL_ALREADY_EXISTS"
    other = issuer.token(sub="other", email="other@example.com")
    await run(browser, "clientIdpLogin", idToken=token)
    assert (await run(browser, "clientLinkIdp", idToken=other))["user"] == first["user"]
    assert (await run(shop.browser(), "clientIdpLogin", idToken=other))["user"] == first["user"]

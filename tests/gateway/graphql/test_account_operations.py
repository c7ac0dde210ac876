"""The documented operations of customers that need a mail or an identity provider."""

from typing import Any

import pytest

from tests.gateway.graphql.test_mails import token_in
from tests.support.issuer import Issuer
from tests.support.mailbox import Mailbox
from tests.support.operations import operation
from tests.support.shop import Browser, Shop

pytestmark = pytest.mark.usefixtures("duties_look_often")


async def run(browser: Browser, name: str, **placeholders: str) -> Any:
    answer = await browser.send(*operation(name, **placeholders))
    return answer.data[name]


async def test_mails_prove_an_email_and_set_a_new_password(posting: Shop, box: Mailbox) -> None:
    browser = posting.browser()
    await run(browser, "clientSignup")
    token = token_in(await box.next(), "https://shop.example/verify-email")
    assert await run(browser, "clientVerifyEmail", token=token) == {"success": True}
    assert (await run(browser, "client"))["user"]["emailVerified"] is True
    assert await run(browser, "clientRequestPasswordReset") == {"success": True}
    token = token_in(await box.next(2), "https://shop.example/reset-password")
    assert await run(browser, "clientResetPassword", token=token) == {"success": True}
    refused = await browser.send(*operation("clientLogin"))
    assert refused.code == "INVALID_CREDENTIALS"


async def test_identity_providers(idp_shop: Shop, issuer: Issuer) -> None:
    token = issuer.token(email="maria@example.com", name="Maria da Silva")
    first = await run(idp_shop.browser(), "clientIdpSignup", idToken=token)
    second = await run(idp_shop.browser(), "clientIdpLogin", idToken=token)
    assert first["user"] == second["user"]
    assert first["user"]["name"] == "Maria da Silva"
    browser = idp_shop.browser()
    answer = await browser.send(*operation("clientSignup"))
    assert answer.code == "EMAIL_ALREADY_EXISTS"
    other = issuer.token(sub="other", email="other@example.com")
    await run(browser, "clientIdpLogin", idToken=token)
    assert (await run(browser, "clientLinkIdp", idToken=other))["user"] == first["user"]
    again = await run(idp_shop.browser(), "clientIdpLogin", idToken=other)
    assert again["user"] == first["user"]

"""The documented operations of customers that need a mail or an identity provider."""

from typing import Any

import pytest

from tests.gateway.graphql.test_mails import token_in
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

"""The limits of accounts: tries, sign-ups, addresses and identities."""

from typing import Any

from gateway.domain.storefront.orders import order_addresses
from gateway.domain.storefront.sign_in import identities
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up, user_of
from tests.gateway.graphql.test_late_writers import guest
from tests.gateway.graphql.test_modals import modal, save
from tests.gateway.graphql.test_profile import save as save_address
from tests.support.issuer import Issuer
from tests.support.shop import Shop, opened


async def id_of(tx: Tx) -> str:
    row = await tx.one("select id from customers")
    assert row is not None
    return str(row["id"])


async def test_faulty_forms_use_up_nothing(still: Database) -> None:
    """A visitor who corrects a form gets through; whoever looks for accounts does not."""
    async with opened(still, Config(limits=Limits(forms_per_minute=3))) as shop:
        browser = shop.browser()
        for values in ({"password": "x"}, {"email": "none"}, {"name": " "}) * 2:
            sent = {"email": "a0@example.com", **values}
            assert (await sign_up(browser, **sent)).code in ("BAD_USER_INPUT", "PASSWORD_TOO_SHORT")
            assert (await browser.do("lead", "success", email="none")).code == "BAD_USER_INPUT"
        assert (await sign_up(browser, email="a1@example.com")).data
        assert (await browser.do("lead", "success", email="a@example.com")).data
        taken = [(await sign_up(browser, email="a1@example.com")).code for _ in range(2)]
        assert taken == ["EMAIL_ALREADY_EXISTS", "RATE_LIMITED"]


async def test_tries_of_the_own_password(shop: Shop) -> None:
    """Whoever finds an open browser does not find out its password."""
    browser = shop.browser()
    await sign_up(browser)
    for operation, field in (("clientChangePassword", "currentPassword"),
                             ("clientDeleteAccount", "password")):  # fmt: skip
        values: dict[str, Any] = {field: "guess-1"}
        if operation == "clientChangePassword":
            values["newPassword"] = "segredo-2"
        selection = "clientMutationId"
        for _ in range(5):
            answer = await browser.do(operation, selection, **values)
            assert answer.code == "INVALID_CREDENTIALS"
    right = await browser.do("clientDeleteAccount", "success", password=ANA["password"])
    assert right.code == "RATE_LIMITED"
    assert await user_of(browser) is not None
    # A sign-in with the password still works.
    assert (await log_in(shop.browser())).data


async def test_requests_for_new_passwords(still: Database) -> None:
    async with opened(still, Config(limits=Limits(forms_per_minute=0))) as shop:
        browser = shop.browser()
        reset = {"token": "none", "password": "segredo-2"}
        codes = [
            (await browser.do("clientResetPassword", "success", **reset)).code for _ in range(21)
        ]
        assert codes == ["INVALID_TOKEN"] * 20 + ["RATE_LIMITED"]


async def test_addresses_of_an_account(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    made = (await save_address(browser)).data["clientAddressSave"]["address"]["id"]

    async def fill(tx: Tx) -> None:
        for _ in range(order_addresses.MOST - 1):
            values = {"street": "R", "number": "1", "city": "Rio", "state": "RJ", "cep": "20000000"}
            await order_addresses.save(tx, visitor, None, values)

    visitor = await guest(shop, customer_id=await shop.db.read(id_of))
    await shop.db.write(fill)
    assert (await save_address(browser)).code == "CONFLICT"
    assert (await save_address(browser, id=made)).data


async def test_identities_of_an_account(idp_shop: Shop, issuer: Issuer) -> None:
    browser = idp_shop.browser()
    await sign_up(browser)
    codes = []
    for n in range(identities.MOST + 1):
        answer = await browser.do("clientLinkIdp", "token", token=issuer.token(sub=f"s{n}"))
        codes.append(answer.code if "errors" in answer.body else "linked")
    assert codes == ["linked"] * identities.MOST + ["CONFLICT"]


async def test_forms_of_one_address_are_limited(still: Database) -> None:
    async with opened(still, Config(limits=Limits(forms_per_minute=3))) as shop:
        campaign, maria = await modal(shop), {"email": "maria@example.com"}
        leads = " ".join(
            f'm{i}: lead(input: {{hostname: "shop.example", email: "m{i}@a.co"}}) {{ success }}'
            for i in range(2)
        )
        assert (await shop.browser().send(f"mutation {{ {leads} }}")).data
        assert (await save(shop.browser(), campaign["id"])).data
        for refused in (
            await shop.browser().do("lead", "success", **maria),
            await shop.browser().do("ebookLead", "success", ebookId="0" * 24, **maria),
            await save(shop.browser(), campaign["id"], "other@example.com"),
        ):
            assert (refused.status, refused.code) == (200, "RATE_LIMITED")
            assert refused.error["extensions"]["retryAfter"] > 0
        assert (await shop.owner.get("/api/contacts")).body["total"] == 3

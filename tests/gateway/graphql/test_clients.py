"""Customers for the owner of their store: list, read, change little, erase."""

from tests.gateway.graphql.test_accounts import log_in, sign_up, user_of
from tests.support.shop import Shop


async def test_an_erased_customer_is_signed_out(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    [client] = (await shop.owner.get("/api/clients")).body["data"]
    path = f"/api/clients/{client['id']}"
    assert (await shop.owner.delete(path, If_Match='"77"')).status == 412
    gone = await shop.owner.delete(path)
    assert (gone.status, gone.body["id"]) == (200, client["id"])
    assert await user_of(browser) is None
    assert (await log_in(browser)).code == "INVALID_CREDENTIALS"
    assert (await shop.owner.get(path)).status == 404
    assert (await shop.owner.delete(path)).status == 404

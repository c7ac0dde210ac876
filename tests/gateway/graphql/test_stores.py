"""The store of a hostname."""

from tests.support.operations import operation
from tests.support.shop import Shop


async def test_the_documented_operation(shop: Shop) -> None:
    found = (await shop.browser().send(*operation("store"))).data["store"]
    assert (found["name"], found["hostname"]) == ("Coffee Shop", "shop.example")

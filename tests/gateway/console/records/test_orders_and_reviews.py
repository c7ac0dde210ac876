"""Orders and reviews in the console: shown to their owner, canceled and moderated."""

from typing import Any

from outbox.database.transaction import Row, Tx
from tests.support import orders
from tests.support.console import Guest
from tests.support.rest import RestApi
from tests.support.shop import Shop

ORDERS, REVIEWS = "/console/orders", "/console/reviews"


async def shop_of(guest: Guest, hostname: str = "shop.example") -> Shop:
    """Return a store of Maria."""

    async def unit(tx: Tx) -> Row:
        row = await tx.one("select id from users where email = 'maria@example.com'")
        assert row is not None
        return row

    api = RestApi(guest.site)
    owner = await api.key_of((await guest.site.db.read(unit))["id"])
    store = await owner.post("/api/stores", {"hostname": hostname, "name": "Coffee Shop"})
    assert store.status == 201, store.text
    return Shop(api, owner, store.body)


async def order(shop: Shop, quantity: int = 2) -> dict[str, Any]:
    product = await orders.product(shop.owner, storeId=shop.store["id"], name="Beans <1 kg>")
    return await orders.placed(shop, {product: quantity}, shipping=1550, discount=500)

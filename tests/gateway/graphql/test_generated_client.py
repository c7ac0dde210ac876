"""A client that a generator makes from the served schema does the whole purchase."""

from pathlib import Path

import pytest

from tests.support.carts import sell
from tests.support.checkouts import RULES, coupon
from tests.support.generated_client import compiled, generate, purchase
from tests.support.operations import FOLDER
from tests.support.shop import Shop


@pytest.mark.proof
async def test_a_generated_client_buys(shop: Shop, tmp_path: Path) -> None:
    values = {"shippingRules": RULES, "pixKey": "pix@shop.example"}
    assert (await shop.owner.put(f"/api/stores/{shop.store['id']}", values)).status == 200
    await sell(shop, 89.9, stock=5)
    await coupon(shop, "WELCOME", discountPercentage=10)
    origin = shop.api.site.url
    figures = await generate(origin, tmp_path)
    assert figures["documents"] == len([*FOLDER.glob("*.graphql")])
    await compiled(tmp_path)
    told = await purchase(origin, shop.hostname, "WELCOME", tmp_path)
    total = 2 * 8990 - 1798 + 2550
    assert told.pop("pixCode").startswith("000201")
    assert told == {"number": "ORD-000001", "total": total, "cart": total, "status": "pending"}
    [order] = (await shop.owner.get("/api/orders")).body["data"]
    assert (order["total"], order["items"][0]["quantity"]) == (total / 100, 2)

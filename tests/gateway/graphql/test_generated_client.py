"""A client that a generator makes from the served schema does the whole purchase."""

import shutil
from pathlib import Path

import pytest

from tests.support.carts import sell
from tests.support.checkouts import RULES, coupon
from tests.support.generators import SOURCES, compiled, generate, told
from tests.support.operations import FOLDER
from tests.support.requirements import need
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
    shutil.copy(SOURCES / "purchase.ts", tmp_path)
    await compiled(tmp_path, "purchase.ts")
    words = (need("node"), tmp_path / "purchase.js", origin, shop.hostname, "WELCOME")
    seen = await told(words, tmp_path)
    total = 2 * 8990 - 1798 + 2550
    assert seen.pop("pixCode").startswith("000201")
    assert seen == {"number": "ORD-000001", "total": total, "cart": total, "status": "pending"}
    [order] = (await shop.owner.get("/api/orders")).body["data"]
    assert (order["total"], order["items"][0]["quantity"]) == (total / 100, 2)

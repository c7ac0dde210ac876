"""Shipping by CEP, of a cart and of a product."""

from typing import Any

from tests.support.shop import Shop

RULES: list[dict[str, Any]] = [
    {
        "type": "express", "name": "Express", "price": 25, "deadline": 2,
        "cepFrom": "01000-000", "cepTo": "05999-999",
    },
    {
        "type": "standard", "name": "Standard", "price": 9.9, "deadline": 7,
        "cepFrom": "01000000", "cepTo": "09999999",
    },
    {
        "type": "express", "name": "Late express", "price": 40, "deadline": 4,
        "cepFrom": "06000000", "cepTo": "09999999",
    },
]  # fmt: skip


async def rule(shop: Shop, rules: list[dict[str, Any]]) -> None:
    path = f"/api/stores/{shop.store['id']}"
    changed = await shop.owner.put(path, {"shippingRules": rules})
    assert changed.status == 200, changed.body

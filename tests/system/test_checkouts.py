"""With a guard off, concurrent checkouts sell something twice.

tests/gateway/graphql/test_checkout_races.py has the races with all guards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest

from gateway.domain.sales import coupons, discounts, unpaid
from gateway.domain.storefront.carts import rows
from tests.gateway.graphql.test_checkout_races import coupon_with_one_use, hundred_buyers, one_cart
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving
from tests.system.staging import opened

TRIES = 5
RACES = {
    "one cart": one_cart,
    "a hundred buyers of ten items": hundred_buyers,
    "a coupon with one use left": coupon_with_one_use,
}


async def _left_open(*_: Any) -> None:
    """Leave the cart as it is."""


def _applies(*_: Any) -> None:
    """Let the coupon apply."""


def without(place: ModuleType, name: str, old: str, new: str = "") -> tuple[ModuleType, str, str]:
    """Return a change of a statement."""
    text = getattr(place, name)
    assert old in text
    return place, name, text.replace(old, new)


GUARDS: Mapping[str, tuple[str, tuple[tuple[ModuleType, str, Any], ...]]] = {
    "stock is taken without looking": (
        "a hundred buyers of ten items", (without(unpaid, "_TAKE", " and stock >= $2"),),
    ),
    "coupons are used without looking": (
        "a coupon with one use left",
        (without(coupons, "_TAKE", "max_uses is null or uses < max_uses", "true"),
         (discounts, "must_apply", _applies)),
    ),
    "carts stay open": ("one cart", ((rows, "close", _left_open),)),
    "carts are not locked": (
        "one cart",
        ((rows, "_LOCK", ""), without(rows, "_END", " and state = 'active'")),
    ),
}  # fmt: skip
"""What to break, and the race that must show it."""


@asynccontextmanager
async def _shop(engine: Engine) -> AsyncIterator[Shop]:
    async with opened(engine) as db, serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        try:
            yield shop
        finally:
            await shop.close()


@pytest.mark.parametrize("guard", GUARDS)
@ENGINES
async def test_a_guard_that_is_off_shows(
    engine: Engine, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, changes = GUARDS[guard]
    # On SQLite the only writer is lock enough.
    shown = engine == "postgres" or guard != "carts are not locked"
    findings: list[str] = []
    async with _shop(engine) as shop:
        for change in changes:
            monkeypatch.setattr(*change)
        for _ in range(TRIES):
            findings = findings or await RACES[name](shop)
        monkeypatch.undo()
    assert bool(findings) == shown, findings

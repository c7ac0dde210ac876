"""Concurrent checkouts sell nothing twice, and their races find each guard that is off."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any

import pytest

from gateway.domain.sales import coupons, discounts, stock
from gateway.domain.storefront.carts import cart_lifecycle, rows
from tests.support.checkout_races import coupon_with_one_use, hundred_buyers, one_cart
from tests.support.engines import Engine
from tests.support.faults import ENGINES, sizes
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving
from tests.system.staging import opened

RACES = {
    "one cart": one_cart,
    "a hundred buyers of ten items": hundred_buyers,
    "a coupon with one use left": coupon_with_one_use,
}


async def _left_open(*_: Any) -> None:
    """Leave the cart as it is."""


def _applies(*_: Any) -> None:
    """Let the coupon apply."""


Change = tuple[ModuleType, str, Any]
GUARDS: Mapping[str, tuple[str, tuple[Change, ...]]] = {
    "stock is taken without looking": (
        "a hundred buyers of ten items",
        ((stock, "_TAKE", stock._TAKE.replace(" and stock >= $2", "")),),
    ),
    "coupons are used without looking": (
        "a coupon with one use left",
        (
            (
                coupons,
                "_TAKE",
                coupons._TAKE.replace("max_uses is null or uses < max_uses", "true"),
            ),
            (discounts, "must_apply", _applies),
        ),
    ),
    "carts stay open": ("one cart", ((cart_lifecycle, "close", _left_open),)),
    "carts are not locked": (
        "one cart",
        (
            (rows, "_LOCK", ""),
            (cart_lifecycle, "_END", cart_lifecycle._END.replace(" and state = 'active'", "")),
        ),
    ),
}
"""What to break, and the race that must show it."""
ONE_WRITER = "carts are not locked"
"""On SQLite the only writer is lock enough."""


async def run_races(engine: Engine, rounds: int) -> dict[str, Any]:
    """Run each race `rounds` times; return the record of the run."""
    findings: list[str] = []
    async with _shop(engine) as shop:
        for name, race in RACES.items():
            for number in range(rounds):
                findings += (f"{name}, round {number}: {found}" for found in await race(shop))
    return {"races": len(RACES), "rounds": rounds, "findings": findings, "pass": not findings}


async def run_unguarded(engine: Engine, guard: str, tries: int) -> list[str]:
    """Run the race of a guard that is off, up to `tries` times; return its first findings."""
    name, changes = GUARDS[guard]
    async with _shop(engine) as shop:
        with _broken(changes):
            for _ in range(tries):
                if findings := await RACES[name](shop):
                    return findings
    return []


@asynccontextmanager
async def _shop(engine: Engine) -> AsyncIterator[Shop]:
    async with opened(engine) as db, serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        try:
            yield shop
        finally:
            await shop.close()


@contextmanager
def _broken(changes: tuple[Change, ...]) -> Iterator[None]:
    kept = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, wrong in changes:
            assert getattr(module, name) != wrong, f"{name} is not changed"
            setattr(module, name, wrong)
        yield
    finally:
        for module, name, right in kept:
            setattr(module, name, right)


@sizes("rounds", large=50)
@ENGINES
async def test_races_sell_nothing_twice(engine: Engine, rounds: int) -> None:
    told = await run_races(engine, rounds)
    assert told["pass"], told


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
@ENGINES
async def test_a_guard_that_is_off_shows(engine: Engine, guard: str) -> None:
    if engine == "sqlite" and guard == ONE_WRITER:
        assert await run_unguarded(engine, guard, 2) == []
        return
    assert await run_unguarded(engine, guard, 5)

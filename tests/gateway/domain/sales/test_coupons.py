"""Coupons: their REST resource, their discounts, and the count of their uses."""

import asyncio
from typing import Any

import pytest

from gateway.domain.sales import coupons
from gateway.domain.sales.discounts import Discount
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from tests.support.rest import Person, Reply, RestApi

STORE = {"hostname": "shop.example", "name": "Coffee Shop"}


async def opened(person: Person, hostname: str = "shop.example") -> str:
    reply = await person.post("/api/stores", {**STORE, "hostname": hostname})
    assert reply.status == 201, reply.body
    return str(reply.body["id"])


async def create(person: Person, store: str, code: str = "TEN", **values: Any) -> Reply:
    return await person.post("/api/coupons", {"storeId": store, "code": code, **values})


def discount(**values: Any) -> Discount:
    none = dict.fromkeys(Discount.__struct_fields__)
    return Discount(**{**none, "id": "1", "code": "C", "active": True, "uses": 0, **values})


def test_a_percentage_is_rounded_half_up_and_an_amount_is_at_most_the_total() -> None:
    for percentage, total, expected in (
        (1000, 0, 0), (1000, 4, 0), (1000, 5, 1), (10_000, 7, 7), (1, 4999, 0), (1, 5000, 1),
        (3333, 10**14, 33_330_000_000_000),
    ):  # fmt: skip
        assert discount(discount_percentage=percentage).of(total) == expected
    assert [discount(discount_value=500).of(total) for total in (499, 501)] == [499, 500]


async def test_faults_of_a_coupon(ana: Person) -> None:
    store = await opened(ana)
    for values, faults in (
        ({}, {"discountPercentage": "required"}),
        ({"discountPercentage": 1, "discountValue": 1}, {"discountValue": "disagrees"}),
        ({"discountPercentage": 0}, {"discountPercentage": "out_of_range"}),
        ({"discountPercentage": 100.01}, {"discountPercentage": "out_of_range"}),
        ({"discountPercentage": 1.001}, {"discountPercentage": "too_precise"}),
        ({"discountValue": 0}, {"discountValue": "out_of_range"}),
        ({"discountValue": 1.001}, {"discountValue": "too_precise"}),
        ({"discountValue": 1, "maxUses": 0}, {"maxUses": "out_of_range"}),
        ({"discountValue": 1, "code": "A B"}, {"code": "invalid_code"}),
        ({"discountValue": 1, "code": ""}, {"code": "too_short"}),
        ({"discountValue": 1, "code": "x" * 65}, {"code": "too_long"}),
        (
            {"discountValue": 1, "startsAt": "2026-02-02", "endsAt": "2026-02-01"},
            {"endsAt": "disagrees"},
        ),
    ):  # fmt: skip
        refused = await create(ana, store, **values)
        assert (refused.status, refused.faults) == (400, faults)


@pytest.mark.parametrize(
    ("zone", "starts", "ends"),
    [
        ("America/Sao_Paulo", "2026-02-01T03:00:00.000Z", "2026-02-02T03:00:00.000Z"),
        ("Asia/Tokyo", "2026-01-31T15:00:00.000Z", "2026-02-01T15:00:00.000Z"),
    ],
)
async def test_a_coupon_of_a_bare_date_applies_until_the_day_ends(
    api: RestApi, ana: Person, zone: str, starts: str, ends: str
) -> None:
    await api.move(ana, zone)
    made = await create(
        ana, await opened(ana), discountValue=1, startsAt="2026-02-01", endsAt="2026-02-01"
    )
    assert (made.status, made.body["startsAt"], made.body["endsAt"]) == (201, starts, ends)
    path = f"/api/coupons/{made.body['id']}"
    last = await ana.put(path, {"endsAt": "9999-12-31", "startsAt": "2026-02-01T03:00:00Z"})
    assert last.body["endsAt"].startswith("9999-12-31T")
    assert (await ana.put(path, {"endsAt": "2026-02-01T03:00:00Z"})).status == 400


async def test_a_change_is_judged_with_what_it_leaves(ana: Person) -> None:
    store = await opened(ana)
    created = await create(ana, store, discountValue=1, endsAt="2026-02-01")
    path = f"/api/coupons/{created.body['id']}"
    for values, faults in (
        ({"discountPercentage": 1}, {"discountPercentage": "disagrees"}),
        ({"discountValue": None}, {"discountValue": "required"}),
        ({"startsAt": "2026-02-02"}, {"startsAt": "disagrees"}),
    ):
        refused = await ana.put(path, values)
        assert (refused.status, refused.faults) == (400, faults)
    assert (await ana.put(path, {"startsAt": "2026-01-31"})).status == 200


async def test_a_code_is_unique_in_its_store_without_case_and_accents(ana: Person) -> None:
    store = await opened(ana)
    assert (await create(ana, store, "Promoção", discountValue=1)).status == 201
    taken = await create(ana, store, "PROMOCAO", discountValue=1)
    assert (taken.status, taken.faults) == (409, {"code": "taken"})
    other = await opened(ana, "other.example")
    assert (await create(ana, other, "PROMOCAO", discountValue=1)).status == 201
    codes = await asyncio.gather(*(create(ana, store, "Race", discountValue=1) for _ in range(5)))
    assert sorted(each.status for each in codes) == [201, 409, 409, 409, 409]


class Counter:
    """Uses of a coupon by orders of a store."""

    def __init__(self, ana: Person, api: Any, store: str, coupon: str) -> None:
        self.actor = Actor(ana.user_id, "storefront", store_id=store)
        self.api, self.ana, self.coupon = api, ana, coupon

    async def reserve(self, order: int, email: str = "", customer: str | None = None) -> str | None:
        """Return None, or the code of the refusal."""
        actor = Actor(
            self.actor.owner_id, "storefront", store_id=self.actor.store_id, customer_id=customer
        )
        try:
            await self.api.db.write(
                coupons.reserve, actor, self.coupon, f"{order:024d}",
                email=email or f"b{order}@example.com",
            )  # fmt: skip
        except Refusal as refusal:
            return refusal.code
        return None

    async def uses(self) -> int:
        return int((await self.ana.get(f"/api/coupons/{self.coupon}")).body["uses"])


@pytest.fixture
async def store(ana: Person) -> str:
    return await opened(ana)


async def counter(api: Any, ana: Person, store: str, **values: Any) -> Counter:
    created = await create(ana, store, discountValue=1, **values)
    assert created.status == 201, created.body
    return Counter(ana, api, store, created.body["id"])


@pytest.mark.parametrize(("limit", "most"), [("maxUses", 3), ("perCustomer", 2)])
async def test_a_coupon_is_never_used_more_often_than_it_allows(
    api: Any, ana: Person, store: str, limit: str, most: int
) -> None:
    emails = ["Maria@example.com", "maria@EXAMPLE.com"]
    for round_ in range(5):
        use = await counter(api, ana, store, code=f"R{round_}", **{limit: most})
        outcomes = await asyncio.gather(
            *(use.reserve(round_ * 100 + n, emails[n % 2]) for n in range(8))
        )
        refused = ["coupon_usage_limit"] * (8 - most)
        assert sorted(each or "" for each in outcomes) == [""] * most + refused
        # A refused use leaves no count.
        assert await use.uses() == most
        other = await use.reserve(round_ * 100 + 50, "joao@example.com")
        assert other == ("coupon_usage_limit" if limit == "maxUses" else None)


async def test_a_released_use_comes_back_once_and_a_redeemed_one_never(
    api: Any, ana: Person, store: str
) -> None:
    use = await counter(api, ana, store, maxUses=1, perCustomer=1)
    assert await use.reserve(1, "a@example.com") is None
    assert await use.reserve(2, "b@example.com") == "coupon_usage_limit"
    released = await asyncio.gather(*(api.db.write(coupons.release, f"{1:024d}") for _ in range(4)))
    assert sorted(released) == [False, False, False, True]
    assert await use.uses() == 0
    assert await use.reserve(3, "a@example.com") is None
    assert await api.db.write(coupons.redeem, f"{3:024d}") is True
    assert await api.db.write(coupons.redeem, f"{3:024d}") is False
    assert await api.db.write(coupons.release, f"{3:024d}") is False
    assert await use.uses() == 1


async def test_a_coupon_that_does_not_hold_here_and_now_cannot_be_reserved(
    api: Any, ana: Person, store: str
) -> None:
    ended: list[tuple[dict[str, Any], str]] = [
        ({"active": False}, "coupon_not_found"),
        ({"endsAt": "2026-01-01"}, "coupon_expired"),
        ({"startsAt": "2099-01-01"}, "coupon_not_applicable"),
    ]
    for number, (values, code) in enumerate(ended):
        use = await counter(api, ana, store, code=f"C{number}", **values)
        assert (await use.reserve(1), await use.uses()) == (code, 0)
    use = await counter(api, ana, store)
    elsewhere = Counter(ana, api, await opened(ana, "other.example"), use.coupon)
    assert (await elsewhere.reserve(1), await use.uses()) == ("coupon_not_found", 0)

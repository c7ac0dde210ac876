"""Coupons: their REST resource, their discounts, and the count of their uses."""

import asyncio
from typing import Any

import pytest

from gateway.domain.sales import coupons
from gateway.domain.sales.discounts import Discount
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from tests.support.rest import Person, Reply

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


@pytest.mark.parametrize(
    ("percentage", "total", "expected"),
    [(1000, 0, 0), (1000, 4, 0), (1000, 5, 1), (10_000, 7, 7), (1, 4999, 0), (1, 5000, 1),
     (3333, 10**14, 33_330_000_000_000)],
)  # fmt: skip
def test_a_percentage_is_rounded_half_up(percentage: int, total: int, expected: int) -> None:
    assert discount(discount_percentage=percentage).of(total) == expected


@pytest.mark.parametrize(("value", "total", "expected"), [(500, 499, 499), (500, 501, 500)])
def test_an_amount_is_at_most_the_total(value: int, total: int, expected: int) -> None:
    assert discount(discount_value=value).of(total) == expected


async def test_a_coupon_is_created_read_changed_and_deleted(ana: Person) -> None:
    store = await opened(ana)
    body = {
        "storeId": store, "code": "WELCOME10", "discountPercentage": 12.5, "minTotal": 99.9,
        "maxUses": 5, "perCustomer": 1, "startsAt": "2026-01-01T00:00:00.000Z",
        "endsAt": "2099-01-01T00:00:00.000Z", "active": True,
    }  # fmt: skip
    created = await ana.post("/api/coupons", body)
    assert created.status == 201
    path = f"/api/coupons/{created.body['id']}"
    shown = (await ana.get(path)).body
    assert shown == created.body
    assert {**body, "uses": 0}.items() <= shown.items()
    assert "discountValue" not in shown
    changed = await ana.put(path, {"discountPercentage": None, "discountValue": 15.5})
    assert changed.body["discountValue"] == 15.5
    assert "discountPercentage" not in changed.body
    # Neither the store nor the count is for the owner to set.
    ignored = await ana.put(path, {"uses": 9, "storeId": "0" * 24})
    assert ignored.headers["X-Ignored-Fields"] == "uses, storeId"
    listed = (await ana.get(f"/api/coupons?storeId={store}")).body
    assert [each["id"] for each in listed["data"]] == [created.body["id"]]
    assert (await ana.get("/api/coupons?search=welcome")).body["total"] == 1
    assert (await ana.delete(path)).status == 200
    assert (await ana.get(path)).status == 404


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        ({}, {"discountPercentage": "required"}),
        ({"discountPercentage": 1, "discountValue": 1}, {"discountValue": "disagrees"}),
        ({"discountPercentage": 0}, {"discountPercentage": "out_of_range"}),
        ({"discountPercentage": 100.01}, {"discountPercentage": "out_of_range"}),
        ({"discountPercentage": 1.001}, {"discountPercentage": "too_precise"}),
        ({"discountValue": 0}, {"discountValue": "out_of_range"}),
        ({"discountValue": 0.001}, {"discountValue": "out_of_range"}),
        ({"discountValue": 1.001}, {"discountValue": "too_precise"}),
        ({"discountValue": 1, "maxUses": 0}, {"maxUses": "out_of_range"}),
        ({"discountValue": 1, "code": "A B"}, {"code": "invalid_code"}),
        ({"discountValue": 1, "code": ""}, {"code": "too_short"}),
        ({"discountValue": 1, "code": "x" * 65}, {"code": "too_long"}),
        (
            {"discountValue": 1, "startsAt": "2026-02-01", "endsAt": "2026-02-01"},
            {"endsAt": "disagrees"},
        ),
    ],
)
async def test_faults_of_a_coupon(
    ana: Person, values: dict[str, Any], faults: dict[str, str]
) -> None:
    refused = await create(ana, await opened(ana), **values)
    assert (refused.status, refused.faults) == (400, faults)


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


async def test_a_coupon_with_one_use_left_is_never_used_twice(
    api: Any, ana: Person, store: str
) -> None:
    for round_ in range(10):
        use = await counter(api, ana, store, code=f"R{round_}", maxUses=3)
        outcomes = await asyncio.gather(*(use.reserve(round_ * 100 + n) for n in range(8)))
        assert sorted(each or "" for each in outcomes) == [""] * 3 + ["coupon_usage_limit"] * 5
        assert await use.uses() == 3


async def test_a_customer_never_uses_a_coupon_more_often_than_it_allows(
    api: Any, ana: Person, store: str
) -> None:
    for round_ in range(10):
        use = await counter(api, ana, store, code=f"R{round_}", perCustomer=2)
        emails = ["Maria@example.com", "maria@EXAMPLE.com"]
        outcomes = await asyncio.gather(
            *(use.reserve(round_ * 100 + n, emails[n % 2]) for n in range(6))
        )
        assert sorted(each or "" for each in outcomes) == [""] * 2 + ["coupon_usage_limit"] * 4
        # A refused use leaves no count.
        assert await use.uses() == 2
        assert await use.reserve(round_ * 100 + 50, "joao@example.com") is None


async def test_a_customer_is_the_same_under_another_email(
    api: Any, ana: Person, store: str
) -> None:
    use = await counter(api, ana, store, perCustomer=1)
    assert await use.reserve(1, "a@example.com", "c" * 24) is None
    assert await use.reserve(2, "b@example.com", "c" * 24) == "coupon_usage_limit"
    assert await use.reserve(3, "a@example.com") == "coupon_usage_limit"
    assert await use.reserve(4, "b@example.com", "d" * 24) is None


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


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"active": False}, "coupon_not_found"),
        ({"endsAt": "2026-01-01"}, "coupon_expired"),
        ({"startsAt": "2099-01-01"}, "coupon_not_applicable"),
    ],
)
async def test_a_coupon_that_ended_meanwhile_cannot_be_reserved(
    api: Any, ana: Person, store: str, values: dict[str, Any], code: str
) -> None:
    use = await counter(api, ana, store, **values)
    assert await use.reserve(1) == code
    assert await use.uses() == 0


async def test_another_store_cannot_reserve_it(api: Any, ana: Person, store: str) -> None:
    use = await counter(api, ana, store)
    elsewhere = Counter(ana, api, await opened(ana, "other.example"), use.coupon)
    assert await elsewhere.reserve(1) == "coupon_not_found"
    assert await use.uses() == 0


async def test_a_deleted_coupon_takes_its_uses_along(api: Any, ana: Person, store: str) -> None:
    use = await counter(api, ana, store)
    assert await use.reserve(1) is None
    gone = await ana.delete(f"/api/coupons/{use.coupon}")
    assert gone.body["message"] == "The coupon and its coupon uses were deleted."

    async def unit(tx: Tx) -> list[Any]:
        return [*await tx.all("select id from coupon_uses")]

    assert await api.db.read(unit) == []
    assert await api.db.write(coupons.release, f"{1:024d}") is False

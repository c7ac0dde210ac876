"""Large responses are completed in parts, so that the event loop serves others between them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from graphql import build_schema, parse, print_schema

from gateway.graphql.costs import COMPLETED
from gateway.graphql.execution import Executor
from gateway.graphql.request_context import PART, Loaders, Pace, RequestContext
from gateway.records.values.global_ids import global_id
from gateway.server.config import Config, Limits
from gateway.server.http.account_turns import EXECUTING, OPERATIONS_EACH, OPERATIONS_WAITING
from outbox.database.transaction import Database
from tests.gateway.graphql.test_products import made
from tests.support.carts import cart, change
from tests.support.shop import Shop, opened
from tests.support.waiting import until

SCHEMA = build_schema(
    "type Query { items: [Item!]! } type Item { number: Int bad: Int items: [Item!]! }"
)
FAULTY = 2 * PART + 5


async def go_on(values: int) -> None:
    """Let a response grow."""


@asynccontextmanager
async def ticking() -> AsyncIterator[Counter[int]]:
    """Count by turn of the event loop; `count[0]` is the current turn."""
    count = Counter[int]()

    async def tick() -> None:
        while True:
            count[0] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(tick())
    yield count
    task.cancel()
    del count[0]


async def test_a_long_list_is_completed_in_parts_with_the_paths_of_its_items() -> None:
    async with ticking() as count:

        def number(item: int, info: Any) -> int:
            count[count[0]] += 1
            return item

        def bad(item: int, info: Any) -> None:
            if item == FAULTY:
                raise ValueError

        fields: Any = SCHEMA.type_map["Item"]
        fields.fields["number"].resolve, fields.fields["bad"].resolve = number, bad
        executor = Executor.build(
            SCHEMA,
            parse("{ items { number bad } }"),
            {"items": [*range(2 * PART + 50)]},
            pace=Pace(go_on),
        )
        assert isinstance(executor, Executor)
        result = await executor.execute_operation()  # type: ignore[misc] # the list is long
    assert max(count.values()) == PART
    assert [one["number"] for one in result.data["items"]] == [*range(2 * PART + 50)]
    assert [error.path for error in result.errors] == [["items", FAULTY, "bad"]]


@pytest.mark.parametrize(("most", "inner"), [(PART, PART), (60, 7), (3 * PART, 3), (2, 2 * PART)])
async def test_lists_of_lists_are_completed_in_parts(most: int, inner: int) -> None:
    schema, below = build_schema(print_schema(SCHEMA)), [*range(inner)]
    async with ticking() as count:
        item: Any = schema.type_map["Item"]

        def number(item: int, info: Any) -> int:
            count[count[0]] += 1
            return item

        item.fields["number"].resolve = number
        item.fields["items"].resolve = lambda item, info: below
        values: list[int] = []

        async def grown(so_far: int) -> None:
            values.append(so_far)

        executor = Executor.build(
            schema, parse("{ items { number items { number } } }"), {"items": [*range(most)]},
            pace=Pace(grown),
        )  # fmt: skip
        assert isinstance(executor, Executor)
        result = await executor.execute_operation()  # type: ignore[misc] # the lists are long
    assert max(count.values()) <= PART
    of_one = [{"number": n} for n in below]
    assert result.data["items"] == [{"number": n, "items": of_one} for n in range(most)]
    assert (values, values[-1]) == (sorted(values), 1 + most * (2 + inner))


CATALOGUE = """query ($h: String!) { products(hostname: $h, first: 100) { nodes {
  id title slug price images { url alt } categories { id name slug parent { name } } } } }"""


async def test_a_response_counts_by_the_values_that_it_has(still: Database) -> None:
    async with opened(still, Config(limits=Limits(storefront_per_minute=30))) as shop:
        await stock(shop, 22)
        browser = shop.browser()
        document = PAGE.format("images { url alt }")
        for rest in (29, 26, 23):
            # 22 products with 50 images of 2 values, which count as two requests more.
            answer = await browser.send(document, {"h": shop.hostname})
            assert len(answer.data["products"]["nodes"]) == 22
            assert answer.headers["RateLimit"].startswith(f'"storefront";r={rest}')


async def test_a_response_that_becomes_large_waits_for_a_turn(shop: Shop) -> None:
    await stock(shop, 22)
    browser, sent = shop.browser(), {"h": shop.hostname}
    turns = shop.api.site.app[EXECUTING]
    for other in ("203.0.113.7", "203.0.113.8"):
        for _ in range(OPERATIONS_EACH):
            await turns.take(other)
    large = asyncio.create_task(browser.send(PAGE.format("images { url alt }"), sent))
    await until(lambda: turns.waiting)
    assert turns.waits("127.0.0.1")
    assert len((await browser.send(PAGE.format("id"), sent)).data["products"]["nodes"]) == 22
    assert not large.done()
    turns.leave(other)
    assert len((await large).data["products"]["nodes"]) == 22
    # It has left its place.
    assert turns.take_free("203.0.113.9")


async def test_a_response_that_becomes_too_large_ends(shop: Shop) -> None:
    await stock(shop, 22)
    aliases = [f"a{n}: images {{ url alt }}" for n in range(30)]
    browser = shop.browser()
    most = await browser.send(PAGE.format(" ".join(aliases[:20])), {"h": shop.hostname})
    images = [node["a19"] for node in most.data["products"]["nodes"]]
    assert [len(of_one) for of_one in images] == [50] * 22
    beyond = await browser.send(PAGE.format(" ".join(aliases)), {"h": shop.hostname})
    assert (beyond.code, beyond.body["data"]) == ("QUERY_TOO_COMPLEX", None)
    assert str(COMPLETED) in beyond.error["message"]


async def test_a_large_response_for_which_too_many_wait_is_refused(shop: Shop) -> None:
    await stock(shop, 22)
    turns = shop.api.site.app[EXECUTING]
    for other in ("203.0.113.7", "203.0.113.8"):
        for _ in range(OPERATIONS_EACH):
            await turns.take(other)
    waiting = [asyncio.create_task(turns.take("127.0.0.1")) for _ in range(OPERATIONS_WAITING)]
    await until(lambda: turns.waiting == OPERATIONS_WAITING)
    large = await shop.browser().send(PAGE.format("images { url alt }"), {"h": shop.hostname})
    assert (large.status, large.code) == (429, "RATE_LIMITED")
    for task in waiting:
        task.cancel()


async def test_a_mutation_whose_payload_becomes_too_large_may_have_been_written(shop: Shop) -> None:
    browser = shop.browser()
    aliases = " ".join(f"a{n}: images {{ url alt }}" for n in range(30))
    payload = f"shoppingCart {{ products {{ {aliases} }} }}"
    for product in await stock(shop, 22):
        await change(browser, "AddProduct", productId=global_id("Product", product))
    answer = await browser.do(
        "shoppingCartUpdateProduct", payload, id=global_id("Product", product), quantity=3
    )
    assert answer.code == "OUTCOME_UNKNOWN"
    assert (await cart(browser))["totalQuantity"] == 24


async def test_a_full_page_of_a_catalogue_is_answered(shop: Shop) -> None:
    names = [f"Category {n}" for n in range(50)]
    for name in names:
        await shop.owner.post("/api/categories", {"storeId": shop.store["id"], "name": name})
    await stock(shop, 100, categories=names)
    answer = await shop.browser().send(CATALOGUE, {"h": shop.hostname})
    nodes = answer.data["products"]["nodes"]
    assert {(len(node["images"]), len(node["categories"])) for node in nodes} == {(50, 50)}
    assert len(nodes) == 100


PAGE = "query ($h: String!) {{ products(hostname: $h, first: 22) {{ nodes {{ {} }} }} }}"


async def stock(shop: Shop, products: int, **values: Any) -> list[str]:
    """Sell products with as many images as one may have; return their ids."""
    images = [{"url": f"https://x.example/{n}", "alt": None} for n in range(50)]
    return [
        (await made(shop.owner, shop.store, f"Product {n}", images=images, **values))["id"]
        for n in range(products)
    ]


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_lists_of_a_large_document_are_completed_one_at_a_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = " ".join(
        f'a{n}: products(hostname: "{shop.hostname}", first: 100) {{ nodes {{ id title sku }} }}'
        for n in range(8)
    )
    resumed = Counter[int]()
    async with ticking() as count:
        pause: Any = RequestContext.give_way

        async def counted(visit: RequestContext) -> None:
            await pause(visit)
            resumed[count[0]] += 1

        monkeypatch.setattr(RequestContext, "give_way", counted)
        answer = await shop.browser().send(f"{{ {lists} }}")
    assert len(answer.data) == 8
    assert (len(resumed), max(resumed.values())) == (8, 1)


async def test_many_loaded_fields_go_on_in_parts() -> None:
    async def unit(*_: object) -> dict[str, int]:
        return dict.fromkeys(map(str, range(3 * PART)), 1)

    async def read(*_: object) -> Any:
        return [await unit()]

    loaders, resumed = Loaders(read), Counter[int]()
    async with ticking() as count:

        async def field(key: str) -> None:
            assert await loaders.load(unit, key) == 1
            resumed[count[0]] += 1

        await asyncio.gather(*(field(str(n)) for n in range(3 * PART)))
    assert max(resumed.values()) == PART

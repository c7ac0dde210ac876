"""Large responses are completed in parts, so that the event loop serves others between them."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from graphql import build_schema, parse

from gateway.graphql.execution import PART, Executor
from gateway.graphql.request_context import Loaders, RequestContext
from tests.support.shop import Shop

SCHEMA = build_schema("type Query { items: [Item!]! } type Item { number: Int bad: Int }")
FAULTY = 2 * PART + 5


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
        )
        assert isinstance(executor, Executor)
        result = await executor.execute_operation()  # type: ignore[misc] # the list is long
    assert max(count.values()) == PART
    assert [one["number"] for one in result.data["items"]] == [*range(2 * PART + 50)]
    assert [error.path for error in result.errors] == [["items", FAULTY, "bad"]]


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

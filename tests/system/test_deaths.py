"""The process ends ten times within minutes while a healthy receiver takes 12 s (R44)."""

from __future__ import annotations

import json
from contextlib import nullcontext, suppress
from functools import partial

import aiohttp
import pytest

from outbox.queue.state.policy import RESCUES_AT_ONCE
from tests.support.deployed import deployed
from tests.support.engines import Engine
from tests.support.ledger import query, until_drained
from tests.support.recipients import Receipt

DEATHS = 10
TAKES = 12.0
WAITS = "5,300,90,7200,18000,36000,50400,72000,86400"
"""The default, but the third wait: it holds the deaths that follow, and the test waits for it."""
STANDING = "select state, tries, rescues from deliveries"


def _more_than(number: int, got: list[Receipt]) -> bool:
    return len(got) > number


@pytest.mark.proof
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_ten_deaths_end_no_delivery_of_a_slow_receiver(engine: Engine) -> None:
    settings = {"CARTEIRO_RETRY__SCHEDULE": WAITS}
    async with deployed(
        engine, 44, owners=1, webhooks=1, latency=(TAKES, TAKES), settings=settings
    ) as site:
        async with aiohttp.ClientSession(site.product.address) as http:
            await site.load.write(http)
        for number in range(DEATHS):
            # On PostgreSQL it is sent again when the dead process's lease has ended. From the third
            # death on it waits, and the process dies without it.
            waits = number > RESCUES_AT_ONCE
            with suppress(TimeoutError) if waits else nullcontext():
                await site.there.until(partial(_more_than, number), 2 if waits else 50)
            site.product.kill()
            await site.product.ended()
            await site.product.start()
        meanwhile = await query(site.url, STANDING)
        left = await until_drained(site.url, 240)
        ends = await query(site.url, STANDING)
    figures = {"fault": "R44", "engine": engine, "deaths": DEATHS, "sent": len(site.there.got)}
    print(json.dumps({**figures, "after_deaths": meanwhile, "unfinished": left, "ends": ends}))
    assert left == 0
    assert len(site.there.got) == RESCUES_AT_ONCE + 2
    assert ends == [("delivered", 1, 0)]

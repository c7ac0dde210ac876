"""What visitors of a store do arrives at the webhook of its owner, through the running product."""

import pytest

from tests.support.engines import Engine
from tests.system.storefront_deliveries import run_steps


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_each_step_ends_in_its_deliveries(engine: Engine) -> None:
    told = await run_steps(engine)
    assert told["pass"], told

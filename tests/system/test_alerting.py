"""Each fault makes its alerts and no others, people are told of its cause, and all ends with it."""

import pytest
import yaml

from tests.support.prometheus import RULES
from tests.system.alerting import WHOLE, run_fault, shortened
from tests.system.faults import FAULTS


def test_the_copy_has_the_true_thresholds() -> None:
    text = (RULES / "alerts.yml").read_text()
    copy = yaml.safe_load(shortened(text))
    rules = {rule["alert"]: rule for group in copy["groups"] for rule in group["rules"]}
    assert rules["OutboxStalled"]["expr"] == "job:outbox_oldest_ready_age_seconds:max > 60"
    assert rules["OutboxStalled"]["for"] == "6s"
    assert "(db_free_bytes[180s], 6 * 3600) < 0" in rules["DiskFillsIn6h"]["expr"]
    recorded = yaml.safe_load(shortened((RULES / "recording.yml").read_text()))
    [whole] = [r for g in recorded["groups"] for r in g["rules"] if r["record"] == WHOLE]
    assert "[5m]" in whole["expr"]


@pytest.mark.faults
@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_makes_its_alerts_and_no_others(name: str) -> None:
    told = await run_fault(name, seed=3)
    assert told["pass"], told

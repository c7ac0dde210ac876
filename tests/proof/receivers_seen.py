"""The lines of who looks at a receiver: the doctor, and `listen` on a developer's machine."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.proof.commands import run, select
from tests.proof.outcome import Line, Outcome
from tests.support.patients import Patient, patients

OPEN = {"CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.0/8"}
CLOSED = {"CARTEIRO_EGRESS__ALLOW_HTTP": "true"}
REFUSED = ("http://10.1.2.3:8080/", "http://localhost:8080/", "http://169.254.169.254/")


async def doctor(seed: int) -> Outcome:
    """Examine a receiver with each fault by the command: the failing step; then as deliveries."""
    outcome = Outcome()
    async with patients() as all_of_them:
        for patient in all_of_them:
            await _examine(outcome, patient, OPEN)
        # The same loopback receivers, when the configuration does not allow them.
        for number, url in enumerate((all_of_them[-1].url.replace("https", "http"), *REFUSED)):
            refused = Patient(f"refused-address-{number}", url, "egress", "blocked", "not allowed")
            await _examine(outcome, refused, CLOSED)
    await select(outcome, "tests/gateway/console/webhooks/test_doctor.py", at_least=20)
    return outcome


async def _examine(outcome: Outcome, patient: Patient, environment: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory(prefix="carteiro-proof-") as folder:
        ended = await run(
            [sys.executable, "-m", "gateway", "doctor", patient.url, "--json", "--timeout", "1"],
            seconds=60,
            folder=Path(folder),
            environment={"PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        )
    found: dict[str, Any] = json.loads(ended.text.splitlines()[0])
    step, said = found["failedStep"], found["steps"][-1]["text"]
    outcome.figures[patient.name] = {"step": step, "says": said}
    outcome.need(
        (step, found["outcome"]) == (patient.step, patient.outcome) and patient.says in said,
        f"{patient.name}: {found}",
    )
    outcome.need(ended.status == (0 if patient.step is None else 1), f"{patient.name}: exit status")


async def listen(seed: int) -> Outcome:
    """Forward events to a local program: what a delivery has, across a restart of the server."""
    outcome = Outcome()
    await select(outcome, "tests/gateway/cli/test_listen.py", at_least=13)
    return outcome


LINES: dict[str, Line] = {"doctor": doctor, "listen": listen}

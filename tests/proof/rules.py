"""The alerts: each fires and is silent when it should, and faults make their own and no others."""

from __future__ import annotations

import asyncio
import subprocess

from tests.dashboards.alerts import ALERTS
from tests.dashboards.test_rules import CASE, CASES, RULES, promtool
from tests.proof.outcome import Line, Outcome
from tests.system.alerting import SHORTER, run_fault
from tests.system.faults import FAULTS


async def rules(seed: int) -> Outcome:
    """Check the rules with promtool, and let each alert fire once and be silent once."""
    outcome = Outcome()
    files = [RULES / "recording.yml", RULES / "alerts.yml"]
    done = [promtool("check", "rules", "--lint=all", "--lint-fatal", *files)]
    done += [await asyncio.to_thread(promtool, "test", "rules", file) for file in CASES]
    cases = [case for file in CASES for case in CASE.findall(file.read_text())]
    fired = {name for name, nothing in cases if not nothing}
    silent = {name for name, nothing in cases if nothing}
    names = {alert.name for alert in ALERTS}
    outcome.figures |= {"alerts": len(names), "cases": len(cases)}
    outcome.need(fired == silent == names, f"without both cases: {names - (fired & silent)}")
    for each in done:
        outcome.need(each.returncode == 0, _words(each))
    return outcome


def _words(done: subprocess.CompletedProcess[str]) -> str:
    return f"{' '.join(map(str, done.args))}: {(done.stdout + done.stderr)[-1000:]}"


async def faults_alerts(seed: int) -> Outcome:
    """Make faults under load, and compare the alerts that fire with those of the fault."""
    outcome = Outcome()
    outcome.figures["waits_and_windows_divided_by"] = SHORTER
    for name in FAULTS:
        outcome.add(name, await run_fault(name, seed))
    return outcome


LINES: dict[str, Line] = {"rules": rules, "faults-alerts": faults_alerts}

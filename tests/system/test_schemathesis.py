"""The served document holds for thousands of requests of schemathesis, which runs unmodified.

It has the options of a user: a key, a number of requests, a report. There are no hooks and no
exclusions, and each request that the document allows and the product refuses has a rule. After all
of them the metrics page is within the budget of docs/reference/metrics.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES
from tests.support.process import carteiro, serving_process
from tests.support.waiting import until

SEED = 30413
EMAIL = "ana@example.com"
PASSWORD = "correct horse battery"
SECONDS = 2_400
MOST_SERIES, MOST_BYTES = 1_500, 300_000
LIMITS = {
    "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
    "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
    "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
    "CARTEIRO_LOGGING__LEVEL": "warning",
}

REFUSED = "ST202"
RULES = {
    "invalid_reference": "A schema cannot say which records exist.",
    "invalid_transition": "What may follow depends on the state of the record.",
    "conflict": "A number or a name is taken, or the record is in another state.",
    "precondition_failed": "If-Match is about the state of the record.",
    "idempotency_mismatch": "A key was used before, for another body.",
    "unknown_field": "A schema cannot depend on Prefer: handling=strict.",
    "unknown_parameter": "The same, of a name in `fields` and `include` too.",
    "invalid_json": "U+0000 is refused in members that no schema names, too.",
    "invalid_cnpj": "A regular expression has no check digits.",
    "invalid_pix_key": "The same.",
    "invalid_email": "A regular expression does not know which signs Unicode has.",
    "invalid_hostname": "The same, and what IDNA makes of them.",
    "invalid_origin": "The same.",
    "invalid_timezone": "The schema has the form of a name, not the zones of the server.",
    "taken": "Another record has this value.",
    "disagrees": "Two members say different things.",
    "required": "One of two members, or a member of a record that is not there yet.",
    "too_large": "A discount is at most the sum of the lines.",
    "not_lost": "A reason needs a lost deal.",
    "empty": "A schema says nothing of what a file contains.",
    "empty_image": "The same.",
    "invalid_characters": "The same.",
    "invalid_encoding": "The same.",
    "invalid_file": "The same.",
    "cursor": "A place comes from the page before, in the same order.",
    "after": "The same.",
    "items": "What an item lacks refuses it alone, with `atomic` all of them.",
    "columns": "They are those of the file.",
    "webhook": "The numbers of deliveries are those of a webhook.",
    "sequence": "One number leaves no range.",
    "from": "A range ends after it begins.",
    "to": "The same.",
    "groupBy": "A range has a bounded number of parts.",
    "timezone": "As invalid_timezone.",
}
"""Why a request is refused that its schema allows: by code, or by parameter."""


async def run_generated_calls(
    engine: Engine, *, examples: int, only: Sequence[str] = (), broken: str = ""
) -> dict[str, Any]:
    """Run once against a separate product; return the record with `calls` and `findings`.

    `only` names operationIds.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-generated-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            return await _run(engine, folder, url, examples, only, broken)


async def _run(
    engine: Engine, folder: Path, url: str, examples: int, only: Sequence[str], broken: str
) -> dict[str, Any]:
    settings = LIMITS | {"CARTEIRO_DATABASE__URL": url, "BROKEN": broken}
    _command(folder, settings, "migrate")
    _command(folder, settings, "secrets", "init")
    _command(folder, settings, "user", "add", EMAIL, "--name", "Ana", "--password-stdin")
    key = _command(folder, settings, "key", "add", EMAIL, "--name", "run")
    module = "tests.system.broken_serve" if broken else "gateway"
    with serving_process(folder, module=module, **settings) as serving:
        report = folder / "report.json"
        done = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "run",
                f"{serving.url}/api/openapi.json", "-H", f"Authorization: Bearer {key}",
                "--max-examples", str(examples), "--seed", str(SEED), "--continue-on-failure",
                "--no-shrink", "--output-truncate", "false",
                "--report", "json", "--report-json-path", str(report),
                *(word for name in only for word in ("--include-operation-id", name)),
            ],
            cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        # The page may be from before the last calls; the next one has another time of the process.
        before = serving.ask("/metrics")[1]
        await until(lambda: serving.ask("/metrics")[1] != before)
        page = serving.ask("/metrics")[1].decode()
    assert report.exists(), (done.stdout + done.stderr)[-2000:]
    told = json.loads(report.read_text())
    findings = [
        f"{failure['code']}: {', '.join(map(str, failure['operations']))}"
        for failure in told["failures"]
        if failure["code"] != REFUSED
    ]
    refused = [why for why in map(_why, done.stdout.split("\n- ")) if why is not None]
    findings += [f"{REFUSED}: {why}" for why in refused if not RULES.keys() >= {*why}]
    findings += [f"error: {error}" for error in told["errors"]]
    findings += [] if told["complete"] else [f"stopped: {told['stop_reason']}"]
    if findings:
        print(done.stdout[-8_000:])
    return {
        "engine": engine, "calls": told["test_cases"]["generated"], "findings": findings,
        "operations": told["operations"]["tested"], "seconds": round(told["running_time"], 1),
        "rules": Counter(code for why in refused for code in why),
        "series": sum(line[:1] not in ("", "#") for line in page.splitlines()),
        "bytes": len(page.encode()),
    }  # fmt: skip


def _why(failure: str) -> list[str] | None:
    """Return the faults of a request that the schema allows, as the run prints it."""
    if not failure.startswith(REFUSED):
        return None
    shown = re.search(r'^ +`(\{"error":.*\})`$', failure, re.M)
    assert shown is not None, failure
    body = json.loads(shown[1])
    faults = body.get("details", ())
    if "/batch" in failure and all(fault["field"].startswith("items[") for fault in faults):
        return ["items"] if faults else [body["code"]]
    return [
        fault["field"] if fault["code"] == "invalid_parameter" else fault["code"]
        for fault in faults
    ] or [body.get("code", "")]


def _command(folder: Path, settings: dict[str, str], *words: str) -> str:
    done = carteiro(*words, folder=folder, stdin=f"{PASSWORD}\n", **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.timeout(3_600)
@ENGINES
async def test_generated_calls(engine: Engine) -> None:
    told = await run_generated_calls(engine, examples=15)
    print(json.dumps(told))
    assert told["findings"] == []
    assert told["calls"] >= 20_000
    assert 0 < told["series"] <= MOST_SERIES
    assert told["bytes"] <= MOST_BYTES


async def test_answers_that_are_not_in_the_document_are_found() -> None:
    told = await run_generated_calls(
        "sqlite", examples=2, broken="undocumented_answers",
        only=("getMe", "getPipelineStats", "listOverdueTasks", "listUpcomingTasks"),
    )  # fmt: skip
    found = " ".join(told["findings"])
    assert "ST103: GET /api/me" in found, told
    assert "ST108: GET /api/deals/pipeline-stats" in found
    assert "ST101: GET /api/tasks/overdue" in found
    assert "upcoming" not in found

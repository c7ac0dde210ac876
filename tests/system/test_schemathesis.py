"""The promises of the served document hold for thousands of generated requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import Engine, empty_database
from tests.support.faults import ENGINES
from tests.support.process import ROOT, carteiro, serving_process

SEED = 30413
EMAIL = "ana@example.com"
PASSWORD = "correct horse battery"
SECONDS = 2_400
LIMITS = {
    "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
    "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
    "CARTEIRO_LIMITS__SIGN_IN_PER_MINUTE": "0",
    "CARTEIRO_LOGGING__LEVEL": "warning",
}

EXCLUSIONS = (
    "412 may answer a good request: If-Match is about the state of the record, not about the data.",
    "GET is not asked to refuse bad query parameters: lists are answered, not refused, since the"
    " contract gives them no 400 (limit is clamped, an unknown filter value finds nothing).",
    "References in good requests are pointed at records that exist: a schema cannot say which do.",
    "Amounts, dates and check digits that must agree with each other are made to agree, U+0000 is"
    " taken out of unknown members, and what stands before the @ is kept short: no schema says so.",
    "fields is left out: it asks for a part of a record, and the schema is that of a whole one.",
)
"""Settings beyond the document; schemathesis_hooks.py has the last two."""

CONFIG = """
seed = {seed}
continue-on-failure = true
hooks = "tests.system.schemathesis_hooks"
warnings = false
[auth.openapi.apiKeyAuth]
api_key = "{key}"
[auth.openapi.bearerAuth]
bearer = "{token}"
[generation]
max-examples = {examples}
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "412", "429"]
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx"]
[[operations]]
include-method = "GET"
checks.negative_data_rejection.enabled = false
"""


async def run_generated_calls(
    engine: Engine, *, examples: int, only: Sequence[str] = (), broken: str = ""
) -> dict[str, Any]:
    """Run once against a separate product; return the record with `calls` and `findings`.

    `only` names operationIds.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-generated-") as home:
        folder = Path(home)
        async with empty_database(engine, folder) as url:
            return _run(engine, folder, url, examples, only, broken)


def _run(
    engine: Engine, folder: Path, url: str, examples: int, only: Sequence[str], broken: str
) -> dict[str, Any]:
    settings = LIMITS | {"CARTEIRO_DATABASE__URL": url, "BROKEN": broken}
    _command(folder, settings, "migrate")
    _command(folder, settings, "secrets", "init")
    _command(folder, settings, "user", "add", EMAIL, "--name", "Ana", "--password-stdin")
    key = _command(folder, settings, "key", "add", EMAIL, "--name", "run")
    module = "tests.system.broken_serve" if broken else "gateway"
    with serving_process(folder, module=module, **settings) as serving:
        sign_in = {"email": EMAIL, "password": PASSWORD}
        status, answer, _ = serving.ask("/api/auth/token", method="POST", body=sign_in)
        assert status == 200, answer
        token = json.loads(answer)["token"]
        config, report = folder / "schemathesis.toml", folder / "report.json"
        config.write_text(CONFIG.format(seed=SEED, key=key, token=token, examples=examples))
        done = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run",
                f"{serving.url}/api/openapi.json",
                "--report", "json", "--report-json-path", str(report),
                *(word for name in only for word in ("--include-operation-id", name)),
            ],
            cwd=ROOT,
            env=os.environ
            | {
                "GENERATED_URL": serving.url, "GENERATED_KEY": key,
                "GENERATED_EMAIL": EMAIL, "GENERATED_PASSWORD": PASSWORD,
            },
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    assert report.exists(), (done.stdout + done.stderr)[-2000:]
    told = json.loads(report.read_text())
    findings = [
        f"{failure['title']}: {', '.join(map(str, failure['operations']))}"
        for failure in told["failures"]
    ]
    findings += [f"error: {error}" for error in told["errors"]]
    findings += [] if told["complete"] else [f"stopped: {told['stop_reason']}"]
    if findings:
        print(done.stdout[-8_000:])
    return {
        "engine": engine, "calls": told["test_cases"]["generated"], "findings": findings,
        "operations": told["operations"]["tested"], "seconds": round(told["running_time"], 1),
    }  # fmt: skip


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
    assert told["calls"] >= 2_000


async def test_answers_that_are_not_in_the_document_are_found() -> None:
    told = await run_generated_calls(
        "sqlite", examples=2, broken="undocumented_answers",
        only=("getMe", "getPipelineStats", "listOverdueTasks", "listUpcomingTasks"),
    )  # fmt: skip
    found = " ".join(told["findings"])
    assert "Undocumented status code: GET /api/me" in found, told
    assert "Response violates schema: GET /api/deals/pipeline-stats" in found
    assert "Server error: GET /api/tasks/overdue" in found
    assert "upcoming" not in found


def test_each_exclusion_says_why() -> None:
    assert len(EXCLUSIONS) <= 5
    assert all(": " in text and text.endswith(".") for text in EXCLUSIONS)

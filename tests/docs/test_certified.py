"""`carteiro certify` against the receivers of the documentation: all of them pass."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from outbox.sending.request import new_secret
from tests.architecture.tree import ROOT
from tests.docs.frameworks import FRAMEWORKS, printed, receiving
from tests.docs.languages import SERVERS
from tests.docs.test_receivers import running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECRET = new_secret(bytes(range(32)))


async def certify(url: str, folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """Run the command in an empty folder; return its status, its report and its complaint."""
    process = await asyncio.create_subprocess_exec(
        str(ROOT / ".venv" / "bin" / "carteiro"), "certify", url, "--json", "--loopback", *words,
        cwd=folder, stdout=PIPE, stderr=PIPE, env=os.environ | {"WEBHOOK_SECRET": SECRET},
    )  # fmt: skip
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, json.loads(out), err.decode()


@pytest.mark.parametrize("kind", [*SERVERS, *FRAMEWORKS])
async def test_a_receiver_passes_and_has_each_event_once(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "empty"
    home.mkdir()
    start = running if kind in SERVERS else receiving
    async with start(kind, tmp_path, SECRET) as (process, url):
        status, report, complaint = await certify(url, home)
        said = await printed(process, tmp_path)
    # How long it takes is also a matter of what else runs on the machine.
    wrong = [
        one for one in report["checks"] if one["verdict"] != "passed" and one["code"] != "slow"
    ]
    assert wrong == []
    assert (status, report["result"], complaint) == (0, "passed", "")
    assert [*home.iterdir()] == []
    assert all(said.count(event_id) == 1 for event_id in report["accepted"])
    assert not any(event_id in said for event_id in report["forbidden"])

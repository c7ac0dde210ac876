"""Secrets rotated under load, as outside verifiers see it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from outbox.sending import request
from tests.support.engines import Engine
from tests.system.rotations import run_rotations

SEED = 92260


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_no_receiver_refuses_a_request(engine: Engine) -> None:
    told = await run_rotations(engine, SEED)
    assert told["pass"], told


@pytest.mark.slow
async def test_signatures_of_one_secret_alone_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    standard = request.sign_standard

    def current(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
        return standard(secrets[:1], message_id, timestamp, body)

    monkeypatch.setattr(request, "sign_standard", current)
    assert (await run_rotations("sqlite", SEED))["bad"]

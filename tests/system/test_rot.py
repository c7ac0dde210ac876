"""Damaged files: the start is refused, or what is delivered is what was written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from outbox.worker import request_building
from tests.system.rot import run_rot

SEED = 26260


@pytest.mark.slow
async def test_no_changed_body_is_delivered() -> None:
    told = await run_rot(12, SEED)
    assert told["pass"], told


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_no_changed_body_is_delivered_of_many() -> None:
    told = await run_rot(150, SEED + 1)
    assert told["pass"], told


@pytest.mark.slow
async def test_without_the_digest_a_changed_body_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Any:
        """Equal to every digest."""

        __hash__ = None  # type: ignore[assignment] # nobody hashes it

        def __eq__(self, other: object) -> bool:
            return True

    anything = SimpleNamespace(sha256=lambda _: SimpleNamespace(hexdigest=Any))
    monkeypatch.setattr(request_building, "hashlib", anything)
    told = await run_rot(9, SEED)
    assert told["changed"], told

"""Damaged files: the start is refused, or what is delivered is what was written."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from outbox.worker import request_building
from tests.support.faults import sizes
from tests.system.rot import run_rot

SEED = 26260


@sizes("files", small=12, large=150)
async def test_no_changed_body_is_delivered(files: int) -> None:
    told = await run_rot(files, SEED)
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

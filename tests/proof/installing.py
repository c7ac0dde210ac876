"""The lines of those who write receivers and of those who install the gateway."""

from __future__ import annotations

import asyncio

from tests.deploy.image import run_image
from tests.docs.languages import LANGUAGES
from tests.docs.vectors import REASONS, VECTORS
from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome


async def receivers(seed: int) -> Outcome:
    """Judge the vectors with the function of each language, and real deliveries by its receiver."""
    outcome = Outcome()
    outcome.figures |= {
        "languages": len(LANGUAGES), "vectors": len(VECTORS), "reasons": len(REASONS),
    }  # fmt: skip
    await select(
        outcome, "tests/docs/test_vectors.py", "tests/docs/test_receivers.py", at_least=100
    )
    return outcome


async def deploy(seed: int) -> Outcome:
    """Build and run the image in a chroot; proxies, compose files and the unit as real programs."""
    outcome = Outcome()
    outcome.add("image", await asyncio.to_thread(run_image))
    await select(outcome, "tests/deploy", "-m", "not faults", at_least=30, seconds=1800)
    return outcome


LINES: dict[str, Line] = {"receivers": receivers, "deploy": deploy}

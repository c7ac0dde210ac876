"""The checkpoints of an owner's delivery log: list them, and make one on demand."""

from __future__ import annotations

import math

from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal, rate_limited
from outbox.database.transaction import Database, Tx
from outbox.durations import MINUTE, SECOND
from outbox.queue.proof import chain_checkpoints
from outbox.queue.proof.chain_checkpoints import NEWEST, Checkpoint, TooSoon
from outbox.sending.ed25519 import SEED_BYTES
from outbox.webhooks.secrets import KeyRing, SealBroken

AUDITED = "checkpoint"
MOST_PARTS = 10
"""The parts that a request makes; the hourly duty makes those of an owner with more."""


async def listed(tx: Tx, actor: Actor, before: int | None, limit: int) -> list[Checkpoint]:
    """Return up to `limit` checkpoints with a number below `before`, newest first."""
    actor.must("read")
    return await chain_checkpoints.page(
        tx, actor.owner_id, NEWEST if before is None else before, limit
    )


async def take(db: Database, actor: Actor, ring: KeyRing) -> list[Checkpoint]:
    """Make checkpoints of what has grown since the last ones, newest first; none when nothing has.

    Raises rate_limited within a minute of the last one, and unavailable when the signing key cannot
    be decrypted.
    """
    actor.must("write")
    checkpoints: list[Checkpoint] = []
    after: str | None = ""
    for _ in range(MOST_PARTS):
        if after is None:
            break
        part = await db.read(chain_checkpoints.part, actor.owner_id, after)
        if part.grown:
            # The further parts of one request follow each other at once.
            apart = 0 if checkpoints else MINUTE
            checkpoints += await db.write(
                _make, actor, after, ring, db.ids.token(SEED_BYTES), apart
            )
        after = part.last
    return checkpoints[::-1]


async def _make(
    tx: Tx, actor: Actor, after: str, ring: KeyRing, seed: bytes, apart: int
) -> list[Checkpoint]:
    try:
        checkpoint = await chain_checkpoints.make(
            tx, actor.owner_id, after, ring, seed, apart=apart
        )
    except SealBroken as error:
        raise Refusal(
            "unavailable",
            f"The signing key of this installation cannot be decrypted: {error}. Ask its operator "
            "to put the key file back.",
        ) from None
    except TooSoon as error:
        retry = math.ceil(error.wait / SECOND)
        raise rate_limited(
            f"The last checkpoint is less than a minute old; try after {retry} s.", retry
        ) from None
    if checkpoint is None:
        return []
    audit.record(tx, actor, "created", AUDITED, None)
    return [checkpoint]

"""Replace the signing secret of a webhook in two steps, so that receivers never refuse a request.

A staged secret signs `webhook-signature` beside the current one. Activating it makes it the current
one, whose `X-Webhook-Signature` changes then; the replaced secret signs `webhook-signature` for
OVERLAP more, and outbox.queue.upkeep.retention deletes it.
"""

from dataclasses import dataclass

from outbox.database import times
from outbox.database.transaction import Tx
from outbox.durations import DAY
from outbox.webhooks.secrets import KeyRing, SealBroken

OVERLAP = DAY
"""How long a replaced secret still signs, in microseconds."""

STAGE = """
update webhooks set staged_secret = $2, version = version + 1, updated_at = $3
where id = $1 and staged_secret is null
"""

ACTIVATE = """
update webhooks
set old_secret = secret, old_secret_until = $2, secret = staged_secret, staged_secret = null,
    secret_since = $3, version = version + 1, updated_at = $3,
    secret_place = coalesce((select chain_place from lanes where webhook_id = webhooks.id), 0)
where id = $1 and staged_secret is not null
"""

OLD = "select old_secret from webhooks where id = $1"
FORGET = "update webhooks set old_secret = null, old_secret_until = null where id = $1"

CANCEL = """
update webhooks set staged_secret = null, version = version + 1, updated_at = $2
where id = $1 and staged_secret is not null
"""

STANDING = """
select staged_secret is not null as staged, old_secret_until from webhooks where id = $1
"""


@dataclass(frozen=True, slots=True)
class RotationState:
    """How far a rotation is. `old_until`: the replaced secret signs until then, if there is one."""

    staged: bool
    old_until: int | None


async def standing(tx: Tx, webhook_id: str) -> RotationState:
    """Return how far the rotation of a webhook is."""
    row = await tx.one(STANDING, webhook_id)
    if row is None:
        return RotationState(staged=False, old_until=None)
    until = row["old_secret_until"]
    # The duty that deletes it runs every few minutes.
    if until is not None and until <= await times.earlier(tx):
        until = None
    return RotationState(bool(row["staged"]), until)


async def stage(tx: Tx, webhook_id: str, secret: str, ring: KeyRing) -> bool:
    """Stage `secret`, a `whsec_…` string; return False when another one is staged."""
    tx.changed.add(webhook_id)
    return await tx.run(STAGE, webhook_id, ring.seal(secret.encode(), webhook_id), tx.now) == 1


async def activate(tx: Tx, webhook_id: str, ring: KeyRing | None = None) -> bool:
    """Make the staged secret the current one; return False when none is staged.

    A replaced secret that the `ring` cannot decrypt cannot sign either, so that it is not kept.
    """
    tx.changed.add(webhook_id)
    activated = await tx.run(ACTIVATE, webhook_id, tx.now + OVERLAP, tx.now) == 1
    row = await tx.one(OLD, webhook_id) if activated and ring is not None else None
    if row is not None and ring is not None:
        try:
            ring.open(bytes(row["old_secret"]), webhook_id)
        except SealBroken:
            await tx.run(FORGET, webhook_id)
    return activated


async def cancel(tx: Tx, webhook_id: str) -> bool:
    """Delete the staged secret; return False when none is staged."""
    tx.changed.add(webhook_id)
    return await tx.run(CANCEL, webhook_id, tx.now) == 1

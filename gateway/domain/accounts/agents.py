"""What an account lets programs do by MCP: delete records, and replay deliveries."""

from dataclasses import dataclass

from gateway.records import audit
from gateway.records.audit import Actor
from outbox.database.transaction import Tx


@dataclass(frozen=True, slots=True)
class Allowed:
    """What programs may do; the scopes of their key apply too."""

    deletes: bool
    replays: bool


async def allowed(tx: Tx, owner_id: str) -> Allowed:
    """Return what an account allows."""
    row = await tx.one("select mcp_deletes, mcp_replays from users where id = $1", owner_id)
    return Allowed(bool(row and row["mcp_deletes"]), bool(row and row["mcp_replays"]))


async def allow(tx: Tx, actor: Actor, permissions: Allowed) -> None:
    """Set what the actor's account allows."""
    before = await allowed(tx, actor.owner_id)
    await tx.run(
        "update users set mcp_deletes = $2, mcp_replays = $3 where id = $1",
        actor.owner_id,
        int(permissions.deletes),
        int(permissions.replays),
    )
    names = {
        "mcpDeletes": before.deletes != permissions.deletes,
        "mcpReplays": before.replays != permissions.replays,
    }
    if changed := [name for name, differs in names.items() if differs]:
        audit.record(tx, actor, "updated", "account", actor.owner_id, changed)

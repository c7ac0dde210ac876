"""Finds the companies that the lines of a file name, and creates those that are not there."""

from collections.abc import Iterable

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.imports.matching import AMONG, lock_all
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import check
from gateway.records.values.folding import fold
from gateway.records.values.formats import Wrong
from outbox.database.sql import items
from outbox.database.transaction import Tx

_FIND = f"""
select id, sort_name from companies where owner_id = $1 and sort_name {AMONG}
order by created_at, id /*postgres for key share*/
"""
_NAME = COMPANIES.named["name"].format


def must_be_name(name: str) -> None:
    """Raise Wrong when no company can have this name."""
    _NAME.accept(name)
    if not fold(name):
        raise Wrong("blank", "Write a name with letters or digits.")


async def find(tx: Tx, actor: Actor, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of the owner's companies with these names, by their folded names.

    The oldest of several counts. Nobody else creates one of these until the transaction ends.
    """
    wanted = sorted({fold(name) for name in names})
    ids: dict[str, str] = {}
    if wanted:
        await lock_all(tx, [f"{actor.owner_id} company {name}" for name in wanted])
        for row in await tx.all(_FIND, actor.owner_id, items(wanted)):
            ids.setdefault(row["sort_name"], row["id"])
    return ids


async def create(tx: Tx, actor: Actor, name: str) -> str:
    """Create a company; return its id."""
    draft = check(COMPANIES, {"name": name}, from_json=True, creating=True)
    return (await actions.create(tx, actor, COMPANIES, draft)).id

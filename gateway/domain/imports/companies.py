"""Finds the companies that the lines of a file name, and creates those that are not there."""

from collections.abc import Iterable, Mapping

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.imports.matching import AMONG, lock_all
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.values.folding import fold
from gateway.records.values.format import Wrong, of_json
from outbox.database.sql import items
from outbox.database.transaction import Tx

_FIND = f"""
select id, sort_name from companies where owner_id = $1 and sort_name {AMONG}
order by created_at, id /*postgres for key share*/
"""
_NAME = COMPANIES.named["name"].format


def must_be_name(name: str) -> None:
    """Raise Wrong when no company can have this name."""
    _NAME.accept(name, of_json)
    if not fold(name):
        raise Wrong("blank", "Write a name with letters or digits.")


async def ids_of(tx: Tx, actor: Actor, names: Iterable[str]) -> Mapping[str, str]:
    """Return the id of the owner's company of each name, by its folded name.

    The oldest of several has it; where there is none, one is created. One statement finds all.
    """
    wanted = {fold(name): name for name in reversed(list(names))}
    if not wanted:
        return {}
    await lock_all(tx, [f"{actor.owner_id} company {name}" for name in sorted(wanted)])
    found: dict[str, str] = {}
    for row in await tx.all(_FIND, actor.owner_id, items(sorted(wanted))):
        found.setdefault(row["sort_name"], row["id"])
    for folded, name in reversed(wanted.items()):
        if folded not in found:
            draft = check(COMPANIES, {"name": name}, read=of_json, creating=True)
            found[folded] = (await actions.create(tx, actor, COMPANIES, draft)).id
    return found

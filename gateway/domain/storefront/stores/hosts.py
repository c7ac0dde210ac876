"""Claims the hostnames of stores, which are unique in the installation and over all cells."""

from collections.abc import Collection, Sequence

from msgspec import json

from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from outbox.database.claims import Claim
from outbox.database.transaction import Tx


def of(record: Record) -> Sequence[str]:
    """Return the hostname and the aliases of a store."""
    return tuple(dict.fromkeys((record["hostname"], *json.decode(record["aliases"]))))


async def claim(tx: Tx, record: Record) -> None:
    """Claim the hostname and the aliases. Raises conflict."""
    for index, name in sorted(enumerate(of(record)), key=lambda pair: pair[1]):
        field = f"aliases[{index - 1}]" if index else "hostname"
        claimed = await tx.run(
            "insert into store_hosts (value, record_id) values ($1, $2) on conflict do nothing",
            name, record.id,
        )  # fmt: skip
        if not claimed:
            message = "Another store has this hostname; send another one."
            raise Refusal("conflict", message, faults=[Fault(field, "taken", message)])
        tx.claims.append(Claim("hostname", name, record.owner_id, field))


async def change(tx: Tx, before: Record, after: Record) -> None:
    """Claim the hostnames that a store has now, and give up those it has no longer."""
    await tx.run("delete from store_hosts where record_id = $1", after.id)
    await claim(tx, after)
    give_up(tx, after.owner_id, set(of(before)).difference(of(after)))


def give_up(tx: Tx, owner_id: str, names: Collection[str]) -> None:
    """Let other cells have these hostnames, once the unit is committed."""
    tx.claims += [Claim("hostname", one, owner_id, holds=False) for one in sorted(names)]

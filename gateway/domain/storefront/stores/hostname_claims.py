"""Claims the hostnames of stores, which are unique in the installation and over all cells.

A hostname that a store gives up rests: for a time only its last owner may take it, as DNS records
and links that still lead to it would give its visitors to the next one. Those of the installation
itself are reserved.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import json

from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.values import dates
from outbox.database.claims import Claim
from outbox.database.expiry import Expiry
from outbox.database.sql import IDS, insert, items
from outbox.database.transaction import Tx
from outbox.durations import DAY

REST = 30 * DAY
"""How long a hostname rests that a store gave up."""
_CLAIM = "insert into store_hosts (value, record_id) values ($1, $2) on conflict do nothing"
_DROP = f"delete from store_hosts where value in {IDS} and record_id = $2"
_WITHHELD = f"""
select value, free_at from freed_hosts where value in {IDS} and owner_id <> $2 and free_at > $3
union all select value, 0 from reserved_hosts where value in {IDS}
"""
_FREED = """
on conflict (value) do update set owner_id = excluded.owner_id, free_at = excluded.free_at
"""
EXPIRY = Expiry("freed_hosts", "value", "free_at")


def of(record: Record) -> Sequence[str]:
    """Return the hostname and the aliases of a store."""
    return tuple(dict.fromkeys((record["hostname"], *json.decode(record["aliases"]))))


async def claim(tx: Tx, record: Record, had: Collection[str] = ()) -> None:
    """Claim the hostname and the aliases that the store has not had. Raises conflict."""
    fields = {
        name: f"aliases[{index - 1}]" if index else "hostname"
        for index, name in enumerate(of(record))
        if name not in had
    }
    for name in sorted(fields):
        if not await tx.run(_CLAIM, name, record.id):
            raise _refused(fields[name], "taken", "Another store has this hostname")
        tx.claims.append(Claim("hostname", name, record.owner_id, fields[name]))
    if not fields:
        return
    # Behind the claims: a claim waits for the transaction that gives its name up.
    for row in await tx.all(_WITHHELD, items([*fields]), record.owner_id, tx.now):
        if not row["free_at"]:
            raise _refused(
                fields[row["value"]], "reserved", "The installation itself has this hostname"
            )
        day = dates.show(row["free_at"])[: dates.DAY_LENGTH]
        raise _refused(
            fields[row["value"]],
            "resting",
            f"Another account gave this hostname up; it is free after {day}",
        )


async def change(tx: Tx, before: Record, after: Record) -> None:
    """Claim the hostnames that a store has now, and give up those it has no longer."""
    had = of(before)
    gone = set(had).difference(of(after))
    if gone:
        await tx.run(_DROP, items(sorted(gone)), after.id)
    await claim(tx, after, had)
    await give_up(tx, after.owner_id, gone)


async def give_up(tx: Tx, owner_id: str, names: Collection[str]) -> None:
    """Let hostnames rest that a store has no longer.

    The directory of cells keeps them as long.
    """
    if names:
        rows = [(name, owner_id, tx.now + REST) for name in sorted(names)]
        await insert(tx, "freed_hosts", ("value", "owner_id", "free_at"), rows, _FREED)
    tx.claims += [Claim("hostname", one, owner_id, holds=False) for one in sorted(names)]


async def reserve(tx: Tx, names: Iterable[str]) -> None:
    """Reserve the hostnames of the installation in place of those before."""
    wanted = items(sorted(names))
    await tx.run(f"delete from reserved_hosts where value not in {IDS}", wanted)
    await tx.run(
        f"insert into reserved_hosts (value) select value from {IDS} as names where true"
        " on conflict do nothing",
        wanted,
    )


async def reserved(tx: Tx) -> set[str]:
    """Return the hostnames that are reserved."""
    return {row["value"] for row in await tx.all("select value from reserved_hosts")}


def _refused(field: str, code: str, text: str) -> Refusal:
    message = f"{text}; send another one."
    return Refusal("conflict", message, faults=[Fault(field, code, message)])

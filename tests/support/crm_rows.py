"""Insert many CRM records straight into their tables, with correct running totals."""

from __future__ import annotations

from collections import Counter

from gateway.records.store import tally
from outbox.database.transaction import Tx

_NUMBERS = """
/*sqlite (with recursive c (n) as (select 1 union all select n + 1 from c where n < $1)
  select n from c) as numbers*/
/*postgres generate_series(1, cast($1 as bigint)) as numbers (n)*/
"""
# Ids of one time, in the order of creation; six random digits tell calls in a millisecond apart.
_ID = """
/*sqlite $2 || printf('%06x', numbers.n)*/
/*postgres cast($2 as text) || lpad(to_hex(numbers.n), 6, '0')*/
"""
_CONTACTS = f"""
insert into contacts (id, owner_id, version, created_at, name, company_id, tags, source, folded,
  sort_name)
select {_ID}, $3, 1, $4, 'Contact', $5, '[]', 'import', 'contact', 'contact' from {_NUMBERS}
where true
"""
_ACTIVITIES = f"""
insert into activities (id, owner_id, version, created_at, type, description, related_id,
  related_type, created_by)
select {_ID}, $3, 1, $4, 'note', 'Called', $5, $6, $3 from {_NUMBERS} where true
"""


async def add_contacts(tx: Tx, owner_id: str, count: int, company_id: str) -> None:
    """Insert `count` contacts of a company."""
    await tx.run(_CONTACTS, count, tx.new_id()[:18], owner_id, tx.now, company_id)
    await _tally(tx, owner_id, "contacts", count)


async def add_activities(
    tx: Tx, owner_id: str, count: int, related_id: str, kind: str = "contact"
) -> None:
    """Insert `count` activities about a record."""
    prefix = tx.new_id()[:18]
    await tx.run(_ACTIVITIES, count, prefix, owner_id, tx.now, related_id, kind)
    await _tally(tx, owner_id, "activities", count)


async def _tally(tx: Tx, owner_id: str, table: str, count: int) -> None:
    # Ids end with the last digit of their number.
    tally(tx, owner_id, table, Counter(n % 16 for n in range(1, count + 1)))

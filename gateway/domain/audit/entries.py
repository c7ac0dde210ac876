"""Reads the audit log: an owner's entries, newest first, with the names of who acted.

gateway.records.audit writes them. A filter that no index serves is judged row by row, so a page
ends after SCANNED rows: it may be short and still have a next page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.records.audit import ACTIONS, KINDS, Actor, Kind, time_of
from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.ids import is_id

SCANNED = 5_000
"""Entries that one page examines at most."""
LATEST = 10
"""Entries of `latest`."""

# The condition on the owner cannot use the primary key, so that PostgreSQL never walks all entries
# of an owner in search of one record.
_OF_RECORD = "audit_records", "record_id = $4 and owner_id || '' = $1"
_OF_OWNER = "", "owner_id = $1"
_PAGE = """
with part as (
  select id, actor, actor_id, action, resource, record_id, fields, request_id, client,
    {hit} as hit
  from audit {hint} where {place} and id < $2 order by id desc limit $3)
select h.id, h.actor, h.actor_id, h.action, h.resource, h.record_id, h.fields, h.request_id,
  h.client, e.reached, e.examined
from (select min(id) as reached, count(*) as examined from part) as e
left join (select * from part where hit = 1 order by id desc limit {most}) as h on true
order by h.id desc
"""
_NAMES: Mapping[str, str] = {
    "users": f"select id, name from users where id in {IDS} and id = $2",
    "api_keys": f"select id, name from api_keys where id in {IDS} and owner_id = $2",
    "customers": f"select id, name from customers where id in {IDS} and owner_id = $2",
    "stores": f"select id, name from stores where id in {IDS} and owner_id = $2",
}
_NAMED: Mapping[Kind, str] = {
    "account": "users", "token": "users", "api_key": "api_keys", "customer": "customers",
    "visitor": "stores",
}  # fmt: skip
"""The table with the name of each kind of actor; a visitor has that of the store."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who acted. `name` is None when what the id names is gone."""

    kind: Kind
    id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; `at` is microseconds UTC. `fields` are names."""

    id: str
    at: int
    actor: Who
    action: str
    resource: str
    record_id: str | None
    fields: Sequence[str]
    request_id: str | None
    client: str | None
    """The MCP client that did it; None for what came another way."""


@dataclass(frozen=True, slots=True)
class Query:
    """Which entries: of a record, of a kind of actor or the actor of an id, of an action."""

    record_id: str = ""
    actor: str = ""
    action: str = ""

    @property
    def possible(self) -> bool:
        """Whether any entry can match."""
        return (
            (not self.record_id or is_id(self.record_id))
            and (not self.actor or self.actor in KINDS or is_id(self.actor))
            and (not self.action or self.action in ACTIONS)
        )

    @property
    def narrow(self) -> bool:
        """Whether it is judged row by row."""
        return bool(self.actor or self.action)


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page; `after` is where the next one starts, None at the end."""

    entries: Sequence[Entry]
    after: str | None


async def page(tx: Tx, actor: Actor, query: Query, after: str, size: int) -> AuditPage:
    """Return a page of the actor's own log. Raises forbidden.

    `after` is the end of the previous page, or empty.
    """
    actor.must("read")
    if not query.possible:
        return AuditPage((), None)
    await by_index(tx)
    examined = SCANNED if query.narrow else size + 1
    values: list[object] = [actor.owner_id, after.lower() or "~", examined]
    hint, place = "", _OF_OWNER[1]
    if query.record_id:
        index, place = _OF_RECORD
        hint = f"/*sqlite indexed by {index}*/"
        values.append(query.record_id.lower())
    judged = []
    if query.actor:
        values.append(query.actor if query.actor in KINDS else query.actor.lower())
        judged.append(f"{'actor' if query.actor in KINDS else 'actor_id'} = ${len(values)}")
    if query.action:
        values.append(query.action)
        judged.append(f"action = ${len(values)}")
    hit = f"case when {' and '.join(judged)} then 1 else 0 end" if judged else "1"
    sql = _PAGE.format(hit=hit, hint=hint, place=place, most=size + 1)
    rows = await tx.all(sql, *values)
    entries = [row for row in rows if row["id"] is not None]
    shown = entries[:size]
    onward = None
    if len(entries) > size:
        onward = str(shown[-1]["id"])
    elif query.narrow and int(rows[0]["examined"]) == examined:
        onward = str(rows[0]["reached"])
    return AuditPage(await _named(tx, actor.owner_id, shown), onward)


async def latest(tx: Tx, actor: Actor, record_id: str) -> Sequence[Entry]:
    """Return the last entries of a record, for its page: who changed it. Raises forbidden."""
    return (await page(tx, actor, Query(record_id=record_id), "", LATEST)).entries


async def _named(tx: Tx, owner_id: str, rows: Sequence[Row]) -> list[Entry]:
    ids: dict[str, set[str]] = {}
    for row in rows:
        if row["actor"] in _NAMED and row["actor_id"] is not None:
            ids.setdefault(_NAMED[row["actor"]], set()).add(row["actor_id"])
    names: dict[str, dict[str, str]] = {}
    for table, wanted in ids.items():
        named: Iterable[Row] = await tx.all(_NAMES[table], items(sorted(wanted)), owner_id)
        names[table] = {row["id"]: row["name"] for row in named}
    return [_entry(row, names) for row in rows]


def _entry(row: Row, names: Mapping[str, Mapping[str, str]]) -> Entry:
    kind, actor_id = row["actor"], row["actor_id"]
    if kind == "system":
        who = Who(kind, None, actor_id)
    else:
        who = Who(kind, actor_id, names.get(_NAMED.get(kind, ""), {}).get(actor_id or ""))
    fields = row["fields"].split(",") if row["fields"] else []
    return Entry(
        id=row["id"],
        at=time_of(row["id"]),
        actor=who,
        action=row["action"],
        resource=row["resource"],
        record_id=row["record_id"],
        fields=fields,
        request_id=row["request_id"],
        client=row["client"],
    )

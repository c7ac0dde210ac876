"""What a list request asks for: query parameters → a plan, and the plan → a page.

A list is answered, not refused: what cannot match gives an empty page. Only an unreadable
`cursor`, `sort` or `updatedSince` is refused.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway import dates, statements, store
from gateway.errors import Fault, Refusal
from gateway.folding import BETWEEN, fold
from gateway.limits import Costly
from gateway.resource import CHANGED, Resource, Wrong
from gateway.store import Record
from outbox.database.transaction import Tx
from outbox.ids import is_id

LIMIT = 20
MOST = 100
LARGEST = 2**63 - 1
NEWEST = "created_at desc, id desc"
CHANGES = f"{CHANGED}, id"


@dataclass(slots=True)
class Plan:
    """A list request, understood. `args` follow the owner, who is `$1` of every statement.

    Among them may be a dates.Day, which `at` makes an instant of.
    """

    page: int
    limit: int
    where: str = "owner_id = $1"
    args: list[Any] = field(default_factory=list)
    order: str = NEWEST
    after: tuple[int, str] | None = None
    walks: bool = True
    """Whether the order is one that a cursor can walk."""
    searches: bool = False
    empty: bool = False
    """Nothing can match."""
    named: bool = False
    """Only records whose ids were given can match."""

    def narrow(self, sql: str, value: Any) -> None:
        """One more condition; `{}` in `sql` is where the value stands."""
        self.args.append(value)
        self.where += " and " + sql.replace("{}", f"${len(self.args) + 1}")

    @property
    def costly(self) -> Costly | None:
        """What it looks through when that is more than a page of an index."""
        if self.empty or self.named:
            return None
        if self.searches:
            return "searched"
        return "filtered" if self.args or self.order != NEWEST else None

    @property
    def timed(self) -> bool:
        """Whether it depends on the time or the time zone, which only the transaction knows."""
        marked = "{now}" in self.where or "{today}" in self.where
        return marked or any(isinstance(value, dates.Day) for value in self.args)

    def at(self, now: int, zone: str) -> "Plan":
        """This plan at a time, with the owner's time zone."""
        where, args = self.where, [dates.settled(value, zone) for value in self.args]
        for mark, value in (("{now}", now), ("{today}", dates.today(now, zone))):
            if mark in where:
                args.append(value)
                # PostgreSQL cannot tell the type of a bare parameter in every place.
                where = where.replace(mark, f"cast(${len(args) + 1} as bigint)")
        return replace(self, where=where, args=args)


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one page; `cursor` leads to the next one, where there is one."""

    records: list[Record]
    total: int
    cursor: str | None
    long: frozenset[str] = frozenset()
    """Ids of those among them whose long texts are yet to be read, each record alone."""
    rest: Sequence[str] = ()
    """Ids of the records of the page that come after these."""


def plan(resource: Resource, query: Mapping[str, str]) -> Plan:
    """Read the query of a list. Raises validation_error for cursor, sort and updatedSince."""
    found = Plan(*window(query))
    if not query:
        return found
    _filter(found, resource, query)
    since = query.get("updatedSince")
    if since is not None:
        found.narrow(f"{CHANGED} >= {{}}", _since(since))
        found.order = CHANGES
    if query.get("sort"):
        found.order = _order(resource, query["sort"])
        found.walks = found.order == NEWEST
    if query.get("cursor"):
        if not found.walks:
            raise _refused("cursor", "A cursor walks the default order; leave sort out.")
        found.after = _cursor(query["cursor"], found.order)
    return found


def window(query: Mapping[str, str], limit: int = LIMIT, most: int = MOST) -> tuple[int, int]:
    """`page` and `limit` of a query; `limit` is what it is without one, and `most` the most."""
    return _positive(query.get("page"), 1), min(_positive(query.get("limit"), limit), most)


def _filter(found: Plan, resource: Resource, query: Mapping[str, str]) -> None:
    search = query.get("search", "").strip()
    # Text that cannot be stored matches nothing, and folded fields must not be matched across.
    found.empty = not _is_text(search) or BETWEEN in search
    sought = "" if found.empty else fold(search)
    if sought and resource.search:
        found.searches = True
        found.narrow("/*sqlite instr(folded, {})*/ /*postgres strpos(folded, {})*/ > 0", sought)
    if "ids" in query:
        ids = [i.strip().lower() for i in query["ids"].split(",") if is_id(i.strip())]
        found.empty = found.empty or not ids
        found.named, places = True, []
        for one in dict.fromkeys(ids):
            found.args.append(one)
            places.append(f"${len(found.args) + 1}")
        found.where += f" and id in ({', '.join(places)})"
    for offered in resource.filters:
        text = query.get(offered.name)
        if text is None:
            continue
        try:
            found.narrow(offered.sql, offered.parse(text))
        except Wrong:
            found.empty = True
        found.empty = found.empty or not _is_text(text)


async def page(tx: Tx, resource: Resource, owner_id: str, wanted: Plan) -> Page:
    """Run a plan for the records of `owner_id`."""
    if wanted.empty:
        return Page([], 0, None)
    if wanted.args:
        row = await tx.one(statements.count(resource, wanted.where), owner_id, *wanted.args)
        count = int(row[0]) if row else 0
    else:
        count = await store.total(tx, owner_id, resource)
    where, args, offset = wanted.where, [owner_id, *wanted.args], 0
    if wanted.after is None:
        offset = (wanted.page - 1) * wanted.limit
    else:
        key, sign = ("created_at", "<") if wanted.order == NEWEST else (CHANGED, ">")
        where += f" and ({key}, id) {sign} (${len(args) + 1}, ${len(args) + 2})"
        args += wanted.after
    records: list[Record] = []
    long: frozenset[str] = frozenset()
    rest: list[str] = []
    # An offset past the end never reaches the database, however large it is.
    if count > offset:
        # One more than is shown tells whether there is a next page.
        args += (min(wanted.limit, MOST) + 1, offset)
        sql = statements.page(
            resource, where, wanted.order,
            size=len(args) - 1, offset=len(args), late=wanted.searches or offset > 0,
        )  # fmt: skip
        records, long = await store.fetch_all(tx, sql, *args)
        if wanted.limit > MOST < len(records):
            args[-2:] = (wanted.limit - MOST, offset + MOST)
            sql = statements.ids(
                resource, where, wanted.order, size=len(args) - 1, offset=len(args)
            )
            rest = [row[0] for row in await tx.all(sql, *args)]
    more = len(records) > min(wanted.limit, MOST)
    records = records[: min(wanted.limit, MOST)]
    cursor = _cursor_of(records[-1], wanted.order) if more and wanted.walks else None
    return Page(records, count, cursor, long, rest)


async def some(tx: Tx, resource: Resource, owner_id: str, ids: Sequence[str]) -> Page:
    """Records of `owner_id` by their ids, in that order; those that are gone are left out."""
    places = ", ".join(f"${i}" for i in range(2, len(ids) + 2))
    sql = statements.page(
        resource, f"owner_id = $1 and id in ({places})", "id",
        size=len(ids) + 2, offset=len(ids) + 3, late=False,
    )  # fmt: skip
    records, long = await store.fetch_all(tx, sql, owner_id, *ids, len(ids), 0)
    place = {record_id: number for number, record_id in enumerate(ids)}
    return Page(sorted(records, key=lambda record: place[record[0]]), len(records), None, long)


def _positive(text: str | None, default: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()):
        return default
    digits = text.lstrip("0")
    # More than fits is read as the most that does: a page far past the end, a limit past the most.
    return min(int(digits[:20]), LARGEST) if digits else default


def _order(resource: Resource, text: str) -> str:
    """`-createdAt,name` as ORDER BY, the id last so that the order is total."""
    offered = {sort.name: sort.column for sort in resource.sorts}
    keys: dict[str, str] = {}
    way = ""
    for part in text.split(","):
        name = part.strip()
        way = " desc" if name.startswith("-") else ""
        column = offered.get(name.removeprefix("-"))
        if column is None:
            names = ", ".join(offered)
            raise _refused("sort", f"Sort by one or more of {names}; a minus before reverses it.")
        keys.setdefault(column, way)
    return ", ".join(column + way for column, way in keys.items()) + f", id{way}"


def _since(text: str) -> int | dates.Day:
    bound = dates.bound(text.strip())
    if bound is None:
        raise _refused("updatedSince", "Send an ISO 8601 date-time such as 2026-11-21T14:30:00Z.")
    return bound


def _cursor_of(record: Record, order: str) -> str:
    """`c` and createdAt, or `u` and the time of the last change; then the id."""
    record_id, _, _, created_at, updated_at = record[:5]
    changed_at = created_at if updated_at is None else updated_at
    key = f"c{created_at}" if order == NEWEST else f"u{changed_at}"
    return urlsafe_b64encode(f"{key}.{record_id}".encode()).decode().rstrip("=")


def _cursor(text: str, order: str) -> tuple[int, str]:
    try:
        plain = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii")
        time, _, record_id = plain[1:].partition(".")
        micros = int(time)
    except (ValueError, binascii.Error):
        plain, micros, record_id = "", 0, ""
    kind = "c" if order == NEWEST else "u"
    if plain[:1] != kind or not is_id(record_id) or abs(micros) > 2**62:
        raise _refused(
            "cursor", "Send the nextCursor of the page before, with the same parameters, or none."
        )
    return micros, record_id


def _is_text(value: str) -> bool:
    """Whether PostgreSQL could take it as a parameter."""
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refused(name: str, message: str) -> Refusal:
    return Refusal(
        "validation_error",
        f"{name}: {message}",
        faults=[Fault(name, "invalid_parameter", message)],
    )

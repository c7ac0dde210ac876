"""Describes a list request in typed values and reads its page; it parses no request text.

A list is never refused: values that cannot match give an empty page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gateway.records import searching, statements, store
from gateway.records.errors import Fault, Refusal
from gateway.records.places import Key, Place, beyond, order_by
from gateway.records.record import CREATED_AT, ID, UPDATED_AT, Record, Row, records_of
from gateway.records.resource import CHANGED, Filter, Resource
from gateway.records.values import dates
from outbox.database.transaction import Tx
from outbox.durations import DAY

LIMIT = 20
LARGEST = 2**62
MOST = 100
"""Most records that are read whole; of a longer page the rest is returned as ids."""
FAR = 1_000
"""Records that a list may pass over before its page without paying for more than a page."""
FARTHEST = 100_000
"""The most records before a page by its number: to pass over them takes as long as to read them."""
OWNED = "owner_id = $1"
OWNED_OF_FEW = f"/*sqlite +*/ {OWNED}"
"""The same for few ids: SQLite would look for them among all records of the owner."""
NEWEST = "created_at desc, id desc"
CHANGES = f"{CHANGED}, id"
_NEWEST_KEYS: Sequence[Key] = (("created_at", True),)
_CHANGES_KEYS: Sequence[Key] = ((CHANGED, False),)
Costly = Literal["searched", "filtered"]


@dataclass(slots=True, kw_only=True)
class Query:
    """A list request. Times are microseconds UTC, or a dates.Day in the owner's time zone."""

    page: int = 1
    limit: int = LIMIT
    scope: Mapping[str, str] = field(default_factory=dict)
    """Columns that narrow the list besides the owner: `store_id`, `customer_id`."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    """Typed values by the names of `Resource.filters`."""
    search: str = ""
    anywhere: bool = False
    """Whether the search also finds phones, documents and numbers, in any form."""
    ids: Sequence[str] | None = None
    since: int | dates.Day | None = None
    """Only records created or changed then or later, in the order of their last change."""
    order: Sequence[tuple[str, bool]] = ()
    """Names of `Resource.sorts`, each with whether it is descending; newest first when empty."""
    after: Place | None = None
    before: Place | None = None
    """The place that the page ends before; the page is then in the same order."""
    conditions: list[tuple[str, Any]] = field(default_factory=list)
    """Further conditions; `{}` in the SQL stands for the value."""
    ordered_by: str = ""
    """An order in SQL, in place of `order`."""
    of_few: bool = False
    """Whether a condition names few ids."""
    nothing: bool = False
    """Nothing can match."""
    counted: bool = True
    """Whether the page has the total, which a filter over many records is slow to count."""
    count_to: int = 0
    """The largest total of a narrowed list; a longer one has this total. 0: no bound."""

    def narrow(self, sql: str, value: Any = None) -> None:
        """Add a condition."""
        self.conditions.append((sql, value))

    def few(self, resource: Resource, offered: Filter, value: Any, most: int) -> None:
        """Take at most `most` records of those that a filter finds, and sort only these.

        The index of all records of the owner would be walked to its end for a filter that finds
        few old ones.
        """
        self.of_few = True
        owned = OWNED_OF_FEW if _names_ids(offered) else OWNED
        subquery = f"select id from {resource.table} where {owned} and {offered.sql} limit {most}"
        self.narrow(f"id in ({subquery})", value)
        self.ordered_by = "created_at + 0 desc, id desc"


@dataclass(frozen=True, slots=True)
class Page:
    """The records of one page; `onward` is the position of the next page, or None."""

    records: Sequence[Record]
    total: int
    """0 when the query did not ask for it."""
    onward: Place | None = None
    long: frozenset[str] = frozenset()
    """Ids of the records whose long texts are still unread; each is to be read alone."""
    rest: Sequence[str] = ()
    """Ids of the records of the page that come after these."""
    back: Place | None = None
    """The position of the first record, if there are records before a page by position."""


def order_of(resource: Resource, query: Query) -> str:
    """Return the order in SQL, made total by the id. Raises KeyError for an unknown name."""
    if not (query.ordered_by or query.order) and query.since is None:
        return NEWEST
    return query.ordered_by or order_by(keys_of(resource, query))


def keys_of(resource: Resource, query: Query) -> Sequence[Key]:
    """Return the keys of the order, each once. Raises KeyError for an unknown name."""
    if not query.order:
        return _NEWEST_KEYS if query.since is None else _CHANGES_KEYS
    sorts = {sort.name: sort for sort in resource.sorts}
    keys: dict[str, Key] = {}
    for name, descending in query.order:
        sort = sorts[name]
        keys.setdefault(name, ((descending and sort.falling) or sort.column, descending))
    return tuple(keys.values())


def costly(resource: Resource, query: Query) -> Costly | None:
    """Return why the list scans more than a page of an index, or None when it does not.

    Records by their ids are read by their key.
    """
    if is_empty(query) or query.ids is not None:
        return None
    if _is_searched(resource, query):
        return "searched"
    narrowed = query.filters or query.scope or query.conditions or query.since is not None
    far = query.after is None and query.before is None and _offset(query) > FAR
    return "filtered" if narrowed or far or order_of(resource, query) != NEWEST else None


async def page(tx: Tx, resource: Resource, owner_id: str, query: Query, zone: str) -> Page:
    """Return the page of the records of `owner_id`, whose time zone is `zone`.

    Raises validation_error for a page by its number that too many records precede.
    """
    if is_empty(query):
        return Page([], 0)
    where, args = conditions(resource, query, tx.now, zone)
    bounded = query.counted and query.count_to > 0 and where != OWNED
    counting, counted_args = where, [owner_id, *args]
    if not query.counted or bounded:
        count = LARGEST
    elif where != OWNED:
        row = await tx.one(statements.count(resource, where), owner_id, *args)
        count = int(row[0]) if row else 0
    else:
        count = await store.total(tx, owner_id, resource)
    order, args, offset = order_of(resource, query), [owner_id, *args], 0
    walked = () if query.ordered_by or query.limit > MOST else keys_of(resource, query)
    # The keys of the default orders are columns of the record.
    read = [sql for sql, _ in walked] if query.order and order != NEWEST else []
    place, backward = query.after or query.before, query.after is None
    if place is None:
        offset = _offset(query)
        if FARTHEST < offset < count:
            raise _too_far(bool(walked))
    else:
        assert walked, "pages by position need an order by keys"
        where += f" and {beyond(walked, place, args, backward=backward)}"
        order = order_by(walked, backward=backward)
    rows: list[Row] = []
    long: frozenset[str] = frozenset()
    rest: list[str] = []
    # An offset past the end never reaches the database, however large it is.
    if count > offset:
        # One extra row shows whether there is a next page.
        args += (min(query.limit, MOST) + 1, offset)
        sql = statements.page(
            resource, where, order, size=len(args) - 1, offset=len(args),
            late=_is_searched(resource, query) or offset > 0, keys=tuple(read),
        )  # fmt: skip
        rows, long = await store.fetch_all(tx, sql, *args)
        if query.limit > MOST < len(rows):
            args[-2:] = (query.limit - MOST, offset + MOST)
            sql = statements.ids(resource, where, order, size=len(args) - 1, offset=len(args))
            rest = [row[0] for row in await tx.all(sql, *args)]
    more = len(rows) > min(query.limit, MOST)
    rows = rows[: min(query.limit, MOST)]
    turned = place is not None and backward
    if turned:
        rows.reverse()
    further = bool(rows) if turned else more
    onward = _place_of(rows[-1], order, len(read)) if further and walked else None
    back = more if turned else place is not None
    start = _place_of(rows[0], order, len(read)) if back and rows else None
    total = count if query.counted else 0
    if bounded and place is None and not more and (rows or not offset):
        total = offset + len(rows) + len(rest)
    elif bounded:
        row = await tx.one(statements.count_to(resource, counting, query.count_to), *counted_args)
        total = int(row[0]) if row else 0
    if read:
        rows = [row[: -len(read)] for row in rows]
    return Page(records_of(resource, rows, tx.now, zone), total, onward, long, rest, start)


async def some(tx: Tx, resource: Resource, owner_id: str, ids: Sequence[str], zone: str) -> Page:
    """Return the records of `owner_id` with these ids, in that order, without deleted ones."""
    places = ", ".join(f"${i}" for i in range(2, len(ids) + 2))
    sql = statements.page(
        resource, f"{OWNED_OF_FEW} and id in ({places})", "id",
        size=len(ids) + 2, offset=len(ids) + 3, late=False,
    )  # fmt: skip
    rows, long = await store.fetch_all(tx, sql, owner_id, *ids, len(ids), 0)
    place = {record_id: number for number, record_id in enumerate(ids)}
    rows.sort(key=lambda row: place[row[ID]])
    return Page(records_of(resource, rows, tx.now, zone), len(rows), None, long)


def is_empty(query: Query) -> bool:
    if query.search and not searching.is_searchable(query.search):
        return True
    return query.nothing or query.ids == []


def _is_searched(resource: Resource, query: Query) -> bool:
    return bool(resource.search and query.search and searching.words_of(query.search))


def _offset(query: Query) -> int:
    return (query.page - 1) * query.limit


def _too_far(walks: bool) -> Refusal:
    onward = "go on with cursor, the nextCursor of a page" if walks else "ask for fewer records"
    fault = Fault(
        "page",
        "invalid_parameter",
        f"At most {FARTHEST} records may precede a page by its number; {onward}.",
    )
    return Refusal("validation_error", fault.sentence, faults=[fault])


def conditions(resource: Resource, query: Query, now: int, zone: str) -> tuple[str, list[Any]]:
    """Return the WHERE condition and its parameters after the owner, who is `$1`."""
    asked = [field for field in resource.filters if field.name in query.filters]
    few = query.ids is not None or query.of_few or any(_names_ids(field) for field in asked)
    where, args = OWNED_OF_FEW if few else OWNED, list[Any]()

    def narrow(sql: str, value: Any) -> None:
        nonlocal where
        if "{}" in sql:
            args.append(dates.settled(value, zone))
            sql = sql.replace("{}", f"${len(args) + 1}")
        where += f" and {sql}"

    for sql, value in query.conditions:
        narrow(sql, value)
    for column, value in query.scope.items():
        narrow(f"{column} = {{}}", value)
    if _is_searched(resource, query):
        numbered = bool(resource.numbers)
        sought = searching.condition(query.search, args, numbered=numbered, anywhere=query.anywhere)
        where += f" and {sought}"
    if query.ids is not None:
        places = []
        for record_id in dict.fromkeys(query.ids):
            args.append(record_id)
            places.append(f"${len(args) + 1}")
        where += f" and id in ({', '.join(places)})"
    for offered in asked:
        narrow(offered.sql, _value(offered, query.filters[offered.name]))
    if query.since is not None:
        narrow(f"{CHANGED} >= {{}}", query.since)
    for mark in ("{now}", "{today}"):
        if mark in where:
            args.append(now if mark == "{now}" else dates.today(now, zone))
            # PostgreSQL cannot infer the type of a bare parameter in every place.
            where = where.replace(mark, f"cast(${len(args) + 1} as bigint)")
    return where, args


def _names_ids(offered: Filter) -> bool:
    """Return whether a filter finds the ids of what names a record in a table of their own."""
    return offered.kind == "id" and offered.sql.startswith("id in ")


def _value(offered: Filter, value: Any) -> Any:
    """Return the value that the SQL of a filter compares with: `to` is inclusive, as shown."""
    if offered.kind == "id":
        return value.lower()
    if offered.kind != "to":
        return value
    return dates.Day(value.day + DAY) if isinstance(value, dates.Day) else dates.after(value)


def _place_of(row: Row, order: str, keys: int) -> Place:
    """Return the position of a row that ends with the values of so many keys of its own."""
    if keys:
        at, *further = row[-keys:]
        return Place(at, row[ID], tuple(further))
    created_at, changed_at = row[CREATED_AT], row[UPDATED_AT]
    newest = order.startswith("created_at")
    return Place(created_at if newest or changed_at is None else changed_at, row[ID])

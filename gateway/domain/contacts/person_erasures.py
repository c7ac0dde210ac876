"""Stores the erasures of persons: what was asked for, how far each is, and its counts.

gateway.domain.privacy does the work and makes the certificate.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, json

from outbox.database.moving_owners import is_here
from outbox.database.sql import AMONG_IDS, IDS, items
from outbox.database.transaction import Row, Tx

Stage = Literal["lines", "records", "responses", "log", "files", "done"]
"""What is being erased: lines of imports, records, stored responses, events with their log, or the
files."""
HALVINGS = 8
"""After so many halvings a unit is one record, or a page of 1 KiB."""
OWNERS = 50
"""Owners that one read of the work returns."""


class Person(Struct, frozen=True):
    """What identifies a person while it is erased.

    `contacts` and `clients` are ids; those not yet erased are in `left` too. `wide`: everything of
    the owner with one of `emails` is the person's; otherwise guest orders of `store` with it are.
    `aliases` are further emails that texts may
    name: they select nothing.
    """

    contacts: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    phones: tuple[str, ...] = ()
    wide: bool = False
    store: str = ""

    @property
    def ids(self) -> tuple[str, ...]:
        return (*self.contacts, *self.clients)


class Begun(Struct, frozen=True):
    """Where an erasure begins, and the counts of rows that are erased and kept by then."""

    stage: Stage = "records"
    erased: Mapping[str, int] = {}
    kept: Mapping[str, int] = {}


class Erasure(Struct, frozen=True):
    """An erasure as it is stored. Times are microseconds UTC."""

    id: str
    owner_id: str
    noun: str
    record_id: str
    requested_at: int
    completed_at: int | None
    stage: Stage
    place: str
    person: Person | None
    records: tuple[str, ...]
    erased: Mapping[str, int]
    kept: Mapping[str, int]
    seal: str | None
    seal_key: str | None
    put_aside: int

    def part(self, most: int) -> int:
        """Return the size of a unit that has `most` at first: half as much for each failure."""
        return max(most >> self.put_aside, 1)


_COLUMNS = (
    "id, owner_id, noun, record_id, requested_at, completed_at, stage, place, person, records,"
    " erased, kept, seal, seal_key, put_aside"
)
_ADD = """
insert into person_erasures (id, owner_id, noun, record_id, requested_at, stage, person, records,
  erased, kept)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (owner_id, record_id) do nothing
"""
_OF_RECORD = f"select {_COLUMNS} from person_erasures where owner_id = $1 and record_id = $2"
_ONE = f"select {_COLUMNS} from person_erasures where id = $1"
_LOCKED = f"{_ONE} /*postgres for update*/"
_PAGE = f"""
select {_COLUMNS} from person_erasures where owner_id = $1 and id < $2 order by id desc limit $3
"""
_SAVE = """
update person_erasures set stage = $2, place = $3, person = $4, records = $5, erased = $6,
  kept = $7
where id = $1
"""
_SEALED = """
update person_erasures set stage = 'done', completed_at = $2, seal = $3, seal_key = $4
where id = $1 and stage = 'files'
"""
_ANY_OPEN = """
select 1 as one where exists (
  select 1 from person_erasures where stage in ('lines', 'records', 'responses')
) or exists (select 1 from person_erasures where stage in ('log', 'files'))
"""
_WORK = f"""
select id from (
  select id, put_aside, row_number() over (partition by owner_id order by put_aside, id) as turn
  from person_erasures
  where stage in ('lines', 'records', 'responses') and not (id {AMONG_IDS})
    and {is_here("person_erasures.owner_id")}
) as waiting where turn = 1 order by put_aside, id limit $2
"""
_PUT_ASIDE = "update person_erasures set put_aside = put_aside + 1 where id = $1 and put_aside < $2"
_IN_STAGE = f"""
select id from person_erasures
where stage in ('log', 'files') and stage = $1 and id > $2 and {is_here("person_erasures.owner_id")}
order by id limit $3
"""
_SOME = (
    f"select {_COLUMNS} from person_erasures where id in {IDS} order by id /*postgres for update*/"
)
_LATEST = "g"
"""Behind every id."""


async def add(
    tx: Tx,
    owner_id: str,
    noun: str,
    record_id: str,
    person: Person,
    *,
    begun: Begun | None = None,
    erasure_id: str | None = None,
) -> Erasure:
    """Store an erasure of the person with this record, once; return it, or the earlier one."""
    begun = begun or Begun()
    await tx.run(
        _ADD, erasure_id or tx.new_id(), owner_id, noun, record_id, tx.now, begun.stage,
        _text(person), _text(person.ids), _text(dict(begun.erased)), _text(dict(begun.kept)),
    )  # fmt: skip
    added = await of_record(tx, owner_id, record_id)
    assert added is not None
    return added


async def of_record(tx: Tx, owner_id: str, record_id: str) -> Erasure | None:
    """Return the erasure that was asked for by this record, or None."""
    row = await tx.one(_OF_RECORD, owner_id, record_id)
    return None if row is None else _of(row)


async def one(tx: Tx, erasure_id: str, *, lock: bool = False) -> Erasure | None:
    """Return the erasure with this id, of any owner, or None."""
    row = await tx.one(_LOCKED if lock else _ONE, erasure_id)
    return None if row is None else _of(row)


async def page(tx: Tx, owner_id: str, before: str | None, limit: int) -> list[Erasure]:
    """Return erasures of an owner, the newest first, those older than the id `before`."""
    rows = await tx.all(_PAGE, owner_id, before or _LATEST, limit)
    return [_of(row) for row in rows]


async def save(
    tx: Tx,
    erasure: Erasure,
    *,
    stage: Stage,
    person: Person | None,
    place: str = "",
    erased: Mapping[str, int] | None = None,
    kept: Mapping[str, int] | None = None,
) -> None:
    """Store how far an erasure is; `erased` and `kept` are added to its counts."""
    records = erasure.records if person is None else person.ids
    await tx.run(
        _SAVE, erasure.id, stage, place, None if person is None else _text(person), _text(records),
        _text(_sum(erasure.erased, erased)), _text(_sum(erasure.kept, kept)),
    )  # fmt: skip


async def seal(tx: Tx, erasure_id: str, completed_at: int, seal: str, key: str) -> None:
    """Complete an erasure with the seal of its certificate."""
    await tx.run(_SEALED, erasure_id, completed_at, seal, key)


async def seal_again(tx: Tx, erasure_id: str, seal: str, key: str) -> None:
    """Replace the seal of a certificate."""
    await tx.run(
        "update person_erasures set seal = $2, seal_key = $3 where id = $1", erasure_id, seal, key
    )


async def any_open(tx: Tx) -> bool:
    """Return whether an erasure is not done."""
    return await tx.one(_ANY_OPEN) is not None


async def work(tx: Tx, without: Collection[str]) -> list[str]:
    """Return an erasure of each owner that has lines, records or responses to erase.

    It is the oldest of those that were put aside least.
    """
    return [row["id"] for row in await tx.all(_WORK, items(sorted(without)), OWNERS)]


async def put_aside(tx: Tx, erasure_id: str) -> bool:
    """Halve the next units of an erasure, and let others go first; return if they were larger."""
    return await tx.run(_PUT_ASIDE, erasure_id, HALVINGS) == 1


async def in_stage(tx: Tx, stage: Stage, after: str, limit: int) -> list[str]:
    """Return the ids of erasures in a stage behind the id `after`, the oldest first."""
    return [row["id"] for row in await tx.all(_IN_STAGE, stage, after, limit)]


async def some(tx: Tx, ids: Sequence[str], stage: Stage) -> list[Erasure]:
    """Return those of the erasures that are in a stage, locked."""
    return [one for row in await tx.all(_SOME, items(ids)) if (one := _of(row)).stage == stage]


def _sum(before: Mapping[str, int], more: Mapping[str, int] | None) -> dict[str, int]:
    return dict(Counter(before) + Counter(more or {}))


def _text(value: Any) -> str:
    return json.encode(value).decode()


def _of(row: Row) -> Erasure:
    stage: Any = row["stage"]
    person = row["person"]
    return Erasure(
        id=row["id"],
        owner_id=row["owner_id"],
        noun=row["noun"],
        record_id=row["record_id"],
        requested_at=row["requested_at"],
        completed_at=row["completed_at"],
        stage=stage,
        place=row["place"],
        person=None if person is None else json.decode(person, type=Person),
        records=json.decode(row["records"], type=tuple[str, ...]),
        erased=json.decode(row["erased"], type=dict[str, int]),
        kept=json.decode(row["kept"], type=dict[str, int]),
        seal=row["seal"],
        seal_key=row["seal_key"],
        put_aside=row["put_aside"],
    )

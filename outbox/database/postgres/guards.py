"""Triggers that watch the rows of one owner while he moves between two databases.

In the source they note the key of each row that changes; once the owner rests or leaves they refuse
the change instead. Each shares the owner's row of `owners`, so that whoever changes its state waits
for the transactions that wrote before, and everybody else sees the new state. In the target they
leave the rows that have arrived as they are: nobody but the move changes them. Rows of other owners
meet a comparison, or the look-up of a parent.

When the owner is gone these triggers go, and a process that still knows nothing of the move would
write what nobody finds. So a trigger stays on the tables of which each write has a row.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from outbox.database import locks
from outbox.database.ownership import Ownership, row_of_owner
from outbox.database.postgres.faults import MOVING
from outbox.database.transaction import Tx

MOVER = "carteiro.move"
"""The setting that has the id of a move in the sessions of its command."""
_SOURCE = """
create or replace function {function}() returns trigger language plpgsql as $guard$
declare standing text;
begin
  if not ({mine}) then
    return {row};
  end if;
  select state into standing from owners where id = {owner} for share;
  if standing in ({open}) then
    {notes}
  elsif standing is not null and not (standing = 'gone'
    and (tg_op = 'DELETE' or coalesce(current_setting('{mover}', true), '') <> '')) then
    raise exception 'this owner is moving to another database' using errcode = '{moving}';
  end if;
  return {row};
end $guard$
"""
_NOTE = """insert into move_changes (mover, name, key)
      values ({owner}, '{table}', cast(json_build_array({key}) as text));"""
_NOTE_EARLIER = """if tg_op = 'UPDATE' and ({old}) is distinct from ({new}) then
      {note}
    end if;"""
_TARGET = """
create or replace function {function}() returns trigger language plpgsql as $guard$
begin
  if ({mine}) and exists (select 1 from owners where id = {owner} and state = 'arriving'
    and move_id is distinct from current_setting('{mover}', true))
  then
    return null;
  end if;
  return {row};
end $guard$
"""
_TRIGGER = """
create or replace trigger {trigger} before {event} on {table} for each row {condition}
execute function {function}()
"""
REFUSING = ("events", "audit")
"""The tables of which each write of an owner has a row."""
_REFUSES = "select 1 from pg_trigger where tgname = 'gone' and tgrelid = to_regclass($1)"
_REFUSE = f"""
create or replace function refuse_gone() returns trigger language plpgsql as $guard$
begin
  if exists (select 1 from owners where id = new.owner_id
    and state in ('leaving', 'gone', 'arriving')
    and move_id is distinct from current_setting('{MOVER}', true))
  then
    raise exception 'this owner is moving to another database' using errcode = '{MOVING}';
  end if;
  return new;
end $guard$
"""
# By its name it is asked before the others: of one who arrives they drop the row in silence.
_GONE = """
create or replace trigger gone before insert on {table} for each row
execute function refuse_gone()
"""
_DROP = "drop function if exists {function}() cascade"
WAIT_MILLISECONDS = 100
"""A transaction of a move waits for no lock longer than this, as others wait behind it."""
VACUUM_MILLISECONDS = 3000
"""The server ends an autovacuum for a lock after `deadlock_timeout`, a second."""
# Nobody who reads or writes waits behind this lock.
_FREE = f"""
set local lock_timeout = {VACUUM_MILLISECONDS};
lock table {{table}} in share update exclusive mode;
set local lock_timeout = {WAIT_MILLISECONDS}
"""
# The lock of outbox.database.postgres.move_connection.
_ALONE = f"select pg_try_advisory_xact_lock(own_lock({locks.MOVE})) as is_alone"
_FOUND = """
select proname as name from pg_proc
where pronamespace = current_schema()::regnamespace and proname like 'moving%' order by proname
"""
_NAMED = re.compile(r"moving_(?:set|delete)_(\w+)\.(\w+)")


@dataclass(frozen=True, slots=True)
class Guarded:
    """A table with its key, and whether its rows still change while the owner rests."""

    name: str
    key: Sequence[str]
    settles: bool


def at_source(ownership: Ownership, table: Guarded, owner_id: str) -> Iterator[str]:
    """Yield the statements that guard a table of the source."""
    states = ("copying", "resting") if table.settles else ("copying",)
    owner = _literal(owner_id)
    yield free(table.name)
    for event, row in (("set", "new"), ("delete", "old")):
        function = _name(event, table.name, owner_id)
        yield _SOURCE.format(
            function=function, mine=row_of_owner(ownership, table.name, row, owner), row=row,
            mover=MOVER, owner=owner, open=", ".join(map(_literal, states)), moving=MOVING,
            notes=_notes(table, row, owner) or "null;",
        )  # fmt: skip
        yield _trigger(ownership, table.name, event, row, owner_id)


def at_target(ownership: Ownership, table: str, owner_id: str) -> Iterator[str]:
    """Yield the statements that guard a table of the target."""
    owner = _literal(owner_id)
    yield free(table)
    for event, row in (("set", "new"), ("delete", "old")):
        yield _TARGET.format(
            function=_name(event, table, owner_id), row=row, owner=owner, mover=MOVER,
            mine=row_of_owner(ownership, table, row, owner),
        )  # fmt: skip
        yield _trigger(ownership, table, event, row, owner_id)


def free(table: str) -> str:
    """Return statements that end an autovacuum of a table, up to the end of the transaction."""
    return _FREE.format(table=table)


async def refuses(tx: Tx, table: str) -> bool:
    """Return whether a table refuses rows of owners who are gone."""
    return await tx.one(_REFUSES, table) is not None


def refusing(table: str) -> Sequence[str]:
    """Return the statements that let a table refuse rows of owners who are gone."""
    return [free(table), _REFUSE, _GONE.format(table=table)]


def dropped(tables: Collection[str], owner_id: str) -> Iterator[Sequence[str]]:
    """Yield for each table the statements that remove what the others made."""
    for table in tables:
        yield (
            free(table),
            *(_DROP.format(function=_name(one, table, owner_id)) for one in ("set", "delete")),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A function of a trigger: its table, and the owner whose rows it watches."""

    table: str
    owner_id: str


async def found(tx: Tx) -> list[Found]:
    """Return the functions of all triggers that moves have made."""
    names = [_NAMED.fullmatch(row["name"]) for row in await tx.all(_FOUND)]
    return [Found(one[1], one[2]) for one in names if one is not None]


async def drop(tx: Tx, table: str, owner_id: str) -> None:
    """Drop the triggers of an owner on one table, unless its lock is not free soon."""
    for statements in dropped([table], owner_id):
        for statement in statements:
            await tx.run(statement)


async def is_alone(tx: Tx) -> bool:
    """Return whether no command moves an owner here; none begins before the transaction ends."""
    row = await tx.one(_ALONE)
    return row is not None and row["is_alone"]


async def moves(tx: Tx, move_id: str) -> None:
    """Let the triggers of this move know the transaction."""
    await tx.one(f"select set_config('{MOVER}', $1, true)", move_id)


def _notes(table: Guarded, row: str, owner: str) -> str:
    """Return what notes the key of a row, and the one it had before."""
    if not table.key:
        return _NOTE.format(owner=owner, table=table.name, key="")
    key, earlier = (", ".join(f"{alias}.{name}" for name in table.key) for alias in (row, "old"))
    note = _NOTE.format(owner=owner, table=table.name, key=key)
    if row == "old":
        return note
    before = _NOTE.format(owner=owner, table=table.name, key=earlier)
    return note + "\n    " + _NOTE_EARLIER.format(old=earlier, new=key, note=before)


def _trigger(ownership: Ownership, table: str, event: str, row: str, owner_id: str) -> str:
    ways = ownership[table]
    direct = isinstance(ways, tuple) and all(way.parent is None for way in ways)
    mine = row_of_owner(ownership, table, row, _literal(owner_id))
    return _TRIGGER.format(
        trigger=f'"moving_{event}.{owner_id}"',
        table=table,
        event="insert or update" if event == "set" else "delete",
        condition=f"when ({mine})" if direct else "",
        function=_name(event, table, owner_id),
    )


def _name(event: str, table: str, owner_id: str) -> str:
    """Return the name of a function, which the owner makes that of one move."""
    return f'"moving_{event}_{table}.{owner_id}"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

"""A node that counts its own work: calls by room, statements, rows, hand-overs and wake-ups.

Run in place of `python -m gateway`. SIGUSR1 begins to count; SIGUSR2 writes what was counted since
then, as JSON, to the file named by COUNTS. The counts do not vary with the speed of the machine,
but for how many units share a transaction.
"""

from __future__ import annotations

import cProfile
import json
import os
import signal
import sqlite3
import sys
import threading
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import CodeType
from typing import Any

import uvloop

from gateway.__main__ import main
from outbox.database.sqlite.file import File
from tests.support.process import ROOT

FILE = "COUNTS"
TABLES = """
select name from sqlite_schema
where type = 'table' and name not like 'sqlite_%' and sql not like 'create virtual%'
"""
WRITTEN = ("insert", "update", "delete")
OWN = f"{Path(__file__).name}:"

profiles: list[cProfile.Profile] = []
"""The calls of each thread; the first one is that of the event loop."""
events: Counter[str] = Counter()
"""Statements by their first word, rows by what was done to them, and hand-overs."""
begun: Counter[str] = Counter()
"""All counts when counting began."""


def place_of(code: CodeType) -> str:
    """Return the room of a function, and its name."""
    path = Path(code.co_filename)
    parts = path.parts
    if "site-packages" in parts:
        room = parts[parts.index("site-packages") + 1]
    elif path.is_relative_to(ROOT):
        room = str(path.relative_to(ROOT).parent)
    else:
        room = "asyncio" if "asyncio" in parts else "python"
    return f"{room} {path.name}:{code.co_name}:{code.co_firstlineno}"


def calls() -> Counter[str]:
    """Return Python calls by place, and C calls by the place that makes them."""
    found: Counter[str] = Counter()
    for profile in profiles:
        for entry in profile.getstats():
            if isinstance(entry.code, str):
                continue
            place = place_of(entry.code)
            if OWN in place:
                # The statements that it passes on are not its own.
                place = f"outbox/database/sqlite {OWN}"
            else:
                found[f"python {place}"] += entry.callcount
            for called in entry.calls or ():
                if not isinstance(called.code, str):
                    callee = place_of(called.code).partition(" ")[2]
                    found[f"callers {callee} <- {place}"] += called.callcount
                elif OWN not in place or "execute" in called.code:
                    found[f"c {place} {called.code}"] += called.callcount
    return found


def switches() -> Counter[str]:
    """Return how often the event loop waited, and how often the other threads did (Linux)."""
    found: Counter[str] = Counter()
    for task in Path("/proc/self/task").iterdir():
        status = (task / "status").read_text()
        waited = int(status.partition("voluntary_ctxt_switches:")[2].split()[0])
        found["wakes loop" if task.name == str(os.getpid()) else "wakes threads"] += waited
    return found


def count() -> Counter[str]:
    profiles[0].disable()
    return calls() + events + switches()


def begin(*_: object) -> None:
    begun.clear()
    begun.update(count())
    profiles[0].enable()


def end(*_: object) -> None:
    found = count()
    found.subtract(begun)
    # The test reads it as soon as it is there.
    file = Path(os.environ[FILE])
    part = file.with_suffix(".part")
    part.write_text(json.dumps({name: value for name, value in found.items() if value > 0}))
    part.rename(file)
    profiles[0].enable()


def begins(*_: object) -> None:
    """Profile a thread from its first call on."""
    profiles.append(profile := cProfile.Profile(builtins=True))
    profile.enable()


class CountingConnection(sqlite3.Connection):
    """A connection that counts its statements, and in the server's own writer the written rows."""

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        stated(sql)
        return super().execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        stated(sql)
        return super().executemany(sql, *args)


def connecting(*args: Any, **kw: Any) -> sqlite3.Connection:
    """Replace sqlite3.connect."""
    return connect(*args, factory=CountingConnection, **kw)


def opened(file: File, writable: bool = True) -> sqlite3.Connection:
    """Replace File.connect: the same connection, which counts written rows."""
    connection = connect_file(file, writable)
    if writable:
        for [name] in connection.execute(TABLES).fetchall():
            for did in WRITTEN:
                connection.create_function(f"count_{did}_{name}", 0, _counter(f"{did} {name}"))
                connection.execute(
                    f"create temp trigger counted_{did}_{name} after {did} on main.{name}"
                    f" begin select count_{did}_{name}(); end"
                )
    return connection


def _counter(what: str) -> Any:
    name = f"rows {what}"

    def one_more() -> None:
        events[name] += 1

    return one_more


def stated(text: str) -> None:
    events[f"statements {text.split(maxsplit=1)[0].lower()}"] += 1
    events[f"texts {' '.join(text.split())[:120]}"] += 1


def handing(name: str) -> Any:
    """Return `call_soon_threadsafe`, which counts."""
    original = getattr(uvloop.Loop, name)

    def counted(loop: Any, *args: Any, **kw: Any) -> Any:
        events["handed to loop"] += 1
        return original(loop, *args, **kw)

    return counted


connect_file = File.connect
connect = sqlite3.connect


def run() -> int:
    vars(import_module("outbox.database.sqlite.file"))["File"].connect = opened
    vars(sqlite3)["connect"] = connecting
    vars(uvloop)["Loop"].call_soon_threadsafe = handing("call_soon_threadsafe")
    threading.setprofile(begins)
    profiles.append(cProfile.Profile(builtins=True))
    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    profiles[0].enable()
    return main()


if __name__ == "__main__":
    sys.exit(run())

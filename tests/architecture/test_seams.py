"""Tests break rules through parts that are handed in, never through private attributes.

gateway/server/parts.py has the parts of a server.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.architecture.tree import ROOT

LEFT = {
    # SQLite and PostgreSQL themselves fail there: no part stands between the driver and its COMMIT.
    "tests/outbox/database/sqlite/test_locks.py: _each_alone",
    "tests/system/broken_serve.py: _commit",
    "tests/system/broken_serve.py: _confirmed",
    # The state of a connection, whose part of aiohttp has no other door.
    # A set of one place, so that few holders fill it.
    "tests/gateway/server/processes/test_shared_counters.py: _places",
    # A queue without a place, and a turn by parts alone.
    "tests/gateway/console/layout/test_pages.py: _waiting",
    "tests/system/test_plans.py: _turn",
    # The moment between a claim and its sends.
    "tests/outbox/worker/test_worker.py: _begin",
}
"""Those that remain; the set only shrinks."""


SETS = re.compile(r"setattr|\._\w+(?:\[[^]]*\])? *(?::[^=]*)?=(?!=)|, ?_\w+ in ")
"""What sets an attribute whose name may be private; to parse every test takes seconds."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def patched(tree: ast.AST) -> Iterator[str]:
    """Yield each private attribute of another object that is set or patched."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name, ctx=ast.Store()) if private(name):
                yield name
            case ast.Call(func=ast.Name(id="setattr") | ast.Attribute(attr="setattr")):
                for argument in node.args[:2]:
                    text = argument.value if isinstance(argument, ast.Constant) else ""
                    name = str(text).rpartition(".")[2]
                    if private(name):
                        yield name


def test_no_private_attribute_is_patched() -> None:
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {name}"
        for path in (ROOT / "tests").rglob("*.py")
        if "node_modules" not in path.parts and SETS.search(text := path.read_text())
        for name in patched(ast.parse(text))
    }
    assert found == LEFT


APPLY = """
import os
from tests.system.broken_serve import RULES
for name, rule in RULES.items():
    if not os.fork():
        rule()
        os._exit(0)
    if os.wait()[1]:
        print(name)
"""
"""Each rule in a process of its own, since it stays."""


def test_each_broken_rule_finds_what_it_breaks() -> None:
    """A rule that renamed parts no longer have would show nothing in `make proof`."""
    run = subprocess.run(
        [sys.executable, "-c", APPLY], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout == "", run.stderr

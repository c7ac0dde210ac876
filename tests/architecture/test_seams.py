"""Tests break rules through parts that are handed in, never through private attributes.

gateway/server/parts.py has the parts of a server. What `make proof` breaks is still there.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pkgutil import resolve_name

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


def named(tree: ast.AST) -> Iterator[str]:
    """Yield, dotted, what is patched in the product, and what tables say to patch.

    That is the text of a call of `setattr`, or an imported module or class before a text.
    """
    at = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("outbox", "gateway"))
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(name)), *_]
            ) if name.startswith(("outbox.", "gateway.")):
                yield name
            case ast.Call(func=ast.Attribute(attr="setattr"), args=parts) | ast.Tuple(elts=parts):
                match parts:
                    case [ast.Name(id=place), ast.Constant(value=str(name)), *_] if place in at:
                        found = resolve_name(at[place])
                        if inspect.ismodule(found) or inspect.isclass(found):
                            yield f"{at[place]}.{name}"


def is_there(name: str) -> bool:
    try:
        resolve_name(name)
    except (AttributeError, ImportError):
        return False
    return True


def test_what_tests_replace_is_there() -> None:
    """A rule that names what was renamed would only show it in `make proof`."""
    found = {
        name: path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if "node_modules" not in path.parts and "setattr" in (text := path.read_text())
        for name in named(ast.parse(text))
    }
    assert len(found) > 100
    assert {name: file for name, file in found.items() if not is_there(name)} == {}


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

"""No test of `make test` depends on how fast the machine is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.tree import ROOT
from tests.support.targets import PLACES

CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"}
READS = re.compile(rf"sleep|{'|'.join(CLOCKS)}")
"""Files without any of these are not parsed, which takes seconds for all."""
WAITING = "tests/support/waiting.py"
"""The only module that looks again after a moment."""
APART = (
    # Their time is that of a simulated loop.
    "tests/support/simulated/",
    # Tools that run tests.
    "tests/support/mutant_runs.py", "tests/support/proof.py",
    # Programs and loads of proofs.
    "tests/docs/receivers.py",
    "tests/docs/session.py", "tests/gateway/server/processes/member_process.py",
    "tests/support/deployed.py", "tests/support/fleet.py", "tests/support/hostilities.py",
    "tests/support/living.py", "tests/support/load.py", "tests/support/product.py",
    "tests/support/recipients.py",
)  # fmt: skip


def is_proof(node: ast.stmt) -> bool:
    """Return whether a function, or all of a module, is marked as a proof."""
    marks: list[ast.expr] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        marks = node.decorator_list
    elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
        marks = [node.value]
    return any("mark.proof" in ast.unparse(mark) for mark in marks)


def real_time(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each use of a real clock, and each sleep, outside of proofs."""
    tests = [one for one in tree.body if getattr(one, "name", "").startswith("test_")]
    whole = [one for one in tree.body if isinstance(one, ast.Assign) and is_proof(one)]
    if whole or (tests and all(map(is_proof, tests))):
        return
    for statement in tree.body:
        if is_proof(statement):
            continue
        for node in ast.walk(statement):
            match node:
                case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in CLOCKS:
                    yield node.lineno, name
                case ast.Name(id=name) if name in CLOCKS:
                    yield node.lineno, name
                case ast.Call(func=ast.Attribute(attr="sleep") | ast.Name(id="sleep")):
                    if [ast.unparse(one) for one in node.args] != ["0"]:
                        yield node.lineno, ast.unparse(node)


def test_tests_neither_measure_time_nor_sleep() -> None:
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")]
    found = [
        f"{file}:{line}: {what}"
        for file in sorted(files)
        if not file.startswith((*PLACES, *APART, WAITING)) and "node_modules" not in file
        if READS.search(text := (ROOT / file).read_text())
        for line, what in real_time(ast.parse(text))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def test_a():\n began = time.perf_counter()", ["perf_counter"]),
        ("from time import monotonic\ndef test_a(): assert monotonic() < 3", ["monotonic"]),
        ("async def test_a(): await asyncio.sleep(0.1)", ["asyncio.sleep(0.1)"]),
        ("async def test_a(): await asyncio.sleep(0)", []),
        ("@pytest.mark.proof\ndef test_a(): time.sleep(1)", []),
        ("pytestmark = [pytest.mark.proof]\ndef test_a(): time.sleep(1)", []),
        ("def help(): time.sleep(1)\n@pytest.mark.proof\ndef test_a(): help()", []),
        ("def help(): time.sleep(1)\ndef test_a(): help()", ["time.sleep(1)"]),
    ],
)
def test_what_is_found(code: str, found: list[str]) -> None:
    assert [what for _, what in real_time(ast.parse(code))] == found


def test_the_exceptions_exist() -> None:
    assert all((ROOT / one).exists() for one in (WAITING, *APART))

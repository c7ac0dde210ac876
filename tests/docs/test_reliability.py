"""The page of the faults: each has a test that exists, and every one of its rows is whole."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tests.architecture.tree import ROOT

PAGE = ROOT / "docs" / "explanation/reliability.md"
FAULTS = [f"R{number}" for number in range(1, 45)]
NOT_YET = {"R22", "R34"}
"""Nobody has asked for their tests yet; the page says so."""
ROW = re.compile(r"^\| (R\d+) \| (.+) \| (.+) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@dataclass(frozen=True)
class Row:
    """One fault of the page."""

    fault: str
    bound: str
    figure: str
    shown: tuple[tuple[str, str], ...]


@cache
def rows() -> dict[str, Row]:
    found = {}
    for name, fault, bound, figure, shown in ROW.findall(PAGE.read_text()):
        assert name not in found, f"{name} has two rows"
        found[name] = Row(fault, bound, figure, tuple(TEST.findall(shown)))
    return found


@cache
def names_in(file: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    )


def missing(rows: Mapping[str, Row]) -> list[str]:
    """Return the faults whose test does not exist."""
    found = []
    for name in FAULTS:
        shown = rows[name].shown if name in rows else ()
        if not shown and name not in NOT_YET:
            found.append(f"{name} has no test")
        for file, test in shown:
            if not (ROOT / file).exists():
                found.append(f"{name}: there is no {file}")
            elif not (test in names_in(file) if test else names_in(file)):
                found.append(f"{name}: {file} has no test {test}")
    return found


def test_the_page_has_each_fault_once_and_in_order() -> None:
    assert list(rows()) == FAULTS


def test_each_fault_has_a_test_and_one_without_is_seen() -> None:
    assert missing(rows()) == []
    wrong = {
        "R1": Row("", "", "", ()),
        "R2": Row("", "", "", (("tests/docs/test_reliability.py", "test_nothing"),)),
        "R3": Row("", "", "", (("tests/system/test_nothing.py", ""),)),
    }
    assert missing(rows() | wrong) == [
        "R1 has no test",
        "R2: tests/docs/test_reliability.py has no test test_nothing",
        "R3: there is no tests/system/test_nothing.py",
    ]


def test_what_has_no_test_is_said() -> None:
    assert {name for name, row in rows().items() if not row.shown} == NOT_YET

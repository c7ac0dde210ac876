"""Imports run downward only, and doors contain no SQL."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, doors, modules

SQL = re.compile(
    r"^\s*(select\b.+\bfrom\b|insert\s+into\b|update\b.+\bset\b|delete\s+from\b|with\b.+\bas\s*\()",
    re.IGNORECASE | re.DOTALL,
)


@pytest.mark.slow
def test_import_contracts_are_kept() -> None:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


BELOW = ["gateway.records.store", "gateway.records.statements"]


def test_every_door_is_under_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    for contract in settings["contracts"]:
        if contract.get("forbidden_modules") == [
            "gateway.records.store",
            "gateway.records.statements",
        ]:
            assert sorted(contract["source_modules"]) == sorted(doors())
            return
    pytest.fail("no contract keeps the doors from gateway.records.store and statements")


def sql_in(source: str) -> list[int]:
    """Return the lines on which a string constant is an SQL statement."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
    ]


@pytest.mark.parametrize("door", doors())
def test_doors_hold_no_sql(door: str) -> None:
    folder = Path(*door.split("."))
    found = [
        f"{path}:{line}"
        for path in modules()
        if path.is_relative_to(folder)
        for line in sql_in((ROOT / path).read_text())
    ]
    assert found == []


def test_sql_is_recognised() -> None:
    assert sql_in(
        'x = "select id\\n from users"\ny = """\n delete from keys"""\nz = "select one"'
    ) == [1, 2]

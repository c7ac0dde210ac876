"""Small modules with telling names, and a README map that equals the tree."""

from __future__ import annotations

import ast
import re

from tests.architecture.tree import ROOT, modules

NOTED, LIMIT = 275, 300
LARGER: dict[str, str] = {}
"""Modules past the limit: path -> why it is still one thing."""
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager"}


def test_modules_stay_small() -> None:
    lines = {path.as_posix(): len((ROOT / path).read_text().splitlines()) for path in modules()}
    print(*(f"{path}: {count} lines" for path, count in lines.items() if count > NOTED), sep="\n")
    assert {
        path: count for path, count in lines.items() if count > LIMIT and path not in LARGER
    } == {}
    assert [path for path in LARGER if lines.get(path, 0) <= LIMIT] == []


def test_modules_are_named_by_what_they_do() -> None:
    parts = {part for path in modules() for part in path.with_suffix("").parts}
    assert parts & VAGUE == set()


def test_modules_open_with_what_lives_in_them() -> None:
    silent = [
        path.as_posix()
        for path in modules()
        if (source := (ROOT / path).read_text()).strip()
        and ast.get_docstring(ast.parse(source)) is None
    ]
    assert silent == []


def readme_map() -> dict[str, str]:
    """Path -> duty, read from the README's fenced block that opens with the outbox folder."""
    text = (ROOT / "README.md").read_text()
    block = re.search(r"^```text\n(outbox/.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block, "README.md has no map: a ```text block whose first line names outbox/"
    listed: dict[str, str] = {}
    folders: list[str] = []
    for line in block[1].splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, duty = line.strip().partition(" ")
        folders[depth:] = [name]
        if not name.endswith("/"):
            listed["".join(folders)] = duty.strip()
    return listed


def test_the_map_equals_the_tree() -> None:
    listed = readme_map()
    there = {path.as_posix() for path in modules() if path.name != "__init__.py"}
    assert sorted(there - listed.keys()) == [], "not in README.md's map"
    assert sorted(listed.keys() - there) == [], "in README.md's map alone"


def test_the_map_says_what_each_module_is_for() -> None:
    assert [path for path, duty in readme_map().items() if len(duty.split()) < 2] == []


def test_migrations_are_numbered_without_gaps() -> None:
    for folder in ("outbox/database/migrations", "gateway/migrations"):
        names = sorted(path.name for path in (ROOT / folder).glob("*.sql"))
        assert names, folder
        assert all(re.fullmatch(r"\d{4}_[a-z0-9_]+\.sql", name) for name in names), names
        assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))

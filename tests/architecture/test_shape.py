"""Small modules with telling names, and a map of rooms that equals the tree."""

from __future__ import annotations

import ast
import re

from tests.architecture.tree import PACKAGES, ROOT, modules

NOTED, LIMIT = 300, 400
REASON = "It is one module because"
"""A module past NOTED lines says in its docstring why it is one thing."""
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "base", "core", "manager"}


def test_modules_stay_small() -> None:
    texts = {path.as_posix(): (ROOT / path).read_text() for path in modules()}
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    assert {path: count for path, count in lines.items() if count > LIMIT} == {}
    docstrings = {path: ast.get_docstring(ast.parse(texts[path])) or "" for path in texts}
    without = [
        path for path, count in lines.items() if count > NOTED and REASON not in docstrings[path]
    ]
    assert without == [], f'say in the docstring: "{REASON} …"'


def test_modules_are_named_by_what_they_do() -> None:
    parts = {part for path in modules() for part in path.with_suffix("").parts}
    assert parts & VAGUE == set()


def test_modules_have_a_docstring() -> None:
    silent = [
        path.as_posix()
        for path in modules()
        if (source := (ROOT / path).read_text()).strip()
        and len((ast.get_docstring(ast.parse(source)) or "").split()) < 2
    ]
    assert silent == []


def mapped_rooms() -> dict[str, str]:
    """Room -> duty, read from the map of docs/explanation/architecture.md."""
    text = (ROOT / "docs/explanation/architecture.md").read_text()
    block = re.search(r"^```text\n(outbox/.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert block, "docs/explanation/architecture.md has no map: a ```text block, first line outbox/"
    listed: dict[str, str] = {}
    package = ""
    for line in block[1].splitlines():
        name, _, duty = line.strip().partition(" ")
        if not line.startswith(" "):
            package = name
        elif package.rstrip("/") in PACKAGES and name.endswith("/"):
            listed[package + name.rstrip("/")] = duty.strip()
    return listed


def rooms() -> set[str]:
    """The folders of the packages that hold modules or migrations."""
    parents = {(ROOT / path).parent for path in modules()}
    parents |= {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.sql")}
    parts = (path.relative_to(ROOT).parts for path in parents)
    return {"/".join(part[:2]) for part in parts if len(part) > 1}


def test_the_map_equals_the_tree() -> None:
    listed = mapped_rooms().keys()
    assert sorted(rooms() - listed) == [], "not in the map of docs/explanation/architecture.md"
    assert sorted(listed - rooms()) == [], "in the map of docs/explanation/architecture.md alone"


def test_the_map_says_what_each_room_is_for() -> None:
    assert [room for room, duty in mapped_rooms().items() if len(duty.split()) < 2] == []


def test_migrations_are_numbered_without_gaps() -> None:
    for folder in ("outbox/database/migrations", "gateway/migrations"):
        kinds = ("*.sql", "*.py")
        names = sorted(path.name for kind in kinds for path in (ROOT / folder).glob(kind))
        assert names, folder
        assert all(re.fullmatch(r"\d{4}_[a-z0-9_]+\.(sql|py)", name) for name in names), names
        assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


PARAMETERS, POSITIONS = 7, 6
MORE_PARAMETERS = {
    "gateway/rest/document/operations.py:operation": 13,
    "gateway/rest/records.py:verb_with": 8,
    "outbox/database/__init__.py:open": 8,
    "outbox/events/__init__.py:enqueue": 9,
    "outbox/sending/send.py:send": 8,
    "outbox/worker/__init__.py:__init__": 8,
    "outbox/worker/sends.py:__init__": 8,
    "outbox/worker/sends.py:_hand_over": 8,
}
"""Doors whose further parameters are given by name, and what each delivery goes through, where a
nested value would be one more call. A function may leave this table, and none comes in."""
STATEMENTS = {"run", "one", "all", "later"}
"""Methods of a transaction: the values of a statement stand in the order of its parameters."""


def test_functions_take_few_parameters_and_calls_name_theirs() -> None:
    parameters: dict[str, int] = {}
    unnamed: list[str] = []
    for path in modules():
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                taken = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(one.arg not in ("self", "cls") for one in taken)
                if count > PARAMETERS:
                    parameters[f"{path.as_posix()}:{node.name}"] = count
            elif isinstance(node, ast.Call) and len(node.args) > POSITIONS:
                name = ast.unparse(node.func)
                if not (name.startswith("tx.") and name.removeprefix("tx.") in STATEMENTS):
                    unnamed.append(f"{path.as_posix()}:{node.lineno} {name}")
    assert unnamed == [], f"give by name what stands past {POSITIONS} values, or make a value of it"
    assert {name: n for name, n in parameters.items() if n > MORE_PARAMETERS.get(name, 0)} == {}
    assert MORE_PARAMETERS.keys() - parameters.keys() == set(), "take it out of the table"


DUTIES = (
    "gateway/rest/", "gateway/graphql/", "gateway/console/", "gateway/mcp/", "gateway/cli/",
    "gateway/domain/", "gateway/records/",
    "outbox/database/postgres/", "outbox/database/sqlite/", "outbox/database/",
)  # fmt: skip
"""Where a folder makes a shared name plain: the doors, the rules and the storage of one noun, and
the engines of one interface."""
EVERYWHERE = {"__init__.py", "__main__.py", "errors.py"}
"""Each floor has its own errors."""


def test_a_file_name_is_unique_or_its_folder_makes_it_plain() -> None:
    duties: dict[str, list[str]] = {}
    for path in modules():
        text = path.as_posix()
        duty = next((one for one in DUTIES if text.startswith(one)), text)
        duties.setdefault(path.name, []).append(duty)
    unclear = {
        name: found
        for name, found in duties.items()
        if len(found) > 1 and name not in EVERYWHERE
        if len(set(found)) < len(found) or not set(found) <= set(DUTIES)
    }
    assert unclear == {}

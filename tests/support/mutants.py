"""`make mutants`: change the product in small ways, one at a time, and count what tests notice.

First the tests of `make test` run once, without a browser, while the lines that each one enters are
recorded (`tests.support.mutant_runs`). A sample of changes (mutants), spread over all rooms by
their size and drawn by a seed, is then tried: a process that has collected the tests is forked for
each, gets the changed code, and runs some tests that enter the changed line. A mutant that none of
them notices has survived; one that no test enters is told apart. The score of a room is
killed / (killed + survived + not entered).

Changed are functions, and statements of SQL that a module keeps in a name. What runs only while a
module is imported is not.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "outbox")
FOLDER = ROOT / "build" / "mutants"
FEWEST = 25
"""So many mutants a room has at least, if it has them."""
TESTS = ("-m", "not proof and not browser", "--assert=plain", "-q", "-p", "no:cacheprovider")

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
SQL = re.compile(r"\b(?:select|update|delete from|insert into|where|exists|order by)\b")
OPERATOR = re.compile(r" (<=|>=|<|>|and|or|is not null|is null|desc|distinct|min|max)(?=[ (\n])")
INSTEAD = {
    "<=": "<", ">=": ">", "<": "<=", ">": ">=", "and": "or", "or": "and", "is null": "is not null",
    "is not null": "is null", "desc": "asc", "distinct": "", "min": "max", "max": "min",
}  # fmt: skip
UNCHANGED = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults"}
"""Parts of functions that run at the import, or never."""
TEXTS = 0.33
"""The share of changed texts that are drawn from: there are as many as of all other kinds."""


@dataclass(frozen=True)
class Mutant:
    """The `number`-th change of a module; `lines` are those whose tests may notice it."""

    path: str
    number: int
    kind: str
    function: str
    lines: tuple[int, ...]

    @property
    def room(self) -> str:
        parts = self.path.split("/")
        return "/".join(parts[:2]) if len(parts) > 2 else parts[0]

    def __str__(self) -> str:
        return f"{self.path}:{self.lines[0]} {self.function}: {self.kind} #{self.number}"


def kind_of(node: ast.AST) -> str:
    """Return how a node can be changed; "" if it cannot."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            return "comparison"
        case ast.BoolOp():
            return "and/or"
        case ast.UnaryOp(op=ast.Not()):
            return "not"
        case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
            texts = (ast.JoinedStr, ast.List, ast.Tuple)
            return "" if isinstance(left, texts) or isinstance(right, texts) else "arithmetic"
        case ast.Constant(value=bool()):
            return "boolean"
        case ast.Constant(value=int()):
            return "number"
        case ast.Constant(value=str(text)) if SQL.search(text):
            return "sql" if OPERATOR.search(text) else ""
        case ast.Constant(value=str(text)) if text.strip():
            return "text"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            return "statement"
        case ast.Return(value=ast.expr() as value):
            return "" if ast.unparse(value) == "None" else "return"
        case ast.IfExp():
            return "choice"
        case ast.Raise():
            return "raise"
        case ast.Continue() | ast.Break():
            return "loop"
    return ""


@dataclass
class Place:
    """A node that can be changed, with its parent and the function around it."""

    node: ast.AST
    parent: ast.AST
    kind: str
    function: str
    line: int
    last: int

    def change(self, dice: random.Random) -> None:
        """Change the tree."""
        node = self.node
        match node:
            case ast.Compare():
                node.ops = [COMPARISONS[type(node.ops[0])]()]
            case ast.BoolOp():
                node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            case ast.UnaryOp():
                self._put(node.operand)
            case ast.BinOp():
                node.op = ARITHMETIC[type(node.op)]()
            case ast.Constant(value=bool()):
                node.value = not node.value
            case ast.Constant(value=int(number)):
                node.value = number + 1
            case ast.Constant(value=str(text)):
                found = [*OPERATOR.finditer(text)] if self.kind == "sql" else []
                node.value = replaced(text, dice.choice(found)) if found else f"XX{text}"
            case ast.Return():
                node.value = ast.Constant(None)
            case ast.IfExp():
                node.body, node.orelse = node.orelse, node.body
            case _:
                self._put(ast.Pass())

    def _put(self, new: ast.AST) -> None:
        for name, value in ast.iter_fields(self.parent):
            if value is self.node:
                setattr(self.parent, name, new)
            elif isinstance(value, list):
                value[:] = [new if one is self.node else one for one in value]


def replaced(text: str, one: re.Match[str]) -> str:
    """Return a statement of SQL with another operator."""
    return text[: one.start(1)] + INSTEAD[one[1]] + text[one.end(1) :]


def places(node: ast.AST, function: str = "", line: int = 0, last: int = 0) -> Iterator[Place]:
    """Yield what can be changed in functions below a node, in the order of the source."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in UNCHANGED or isinstance(child, ast.Assert):
                continue
            docstring = isinstance(node, ast.Expr) and isinstance(child, ast.Constant)
            piece = isinstance(node, ast.JoinedStr) and kind_of(child) == "text"
            first = getattr(child, "lineno", line)
            end = getattr(child, "end_lineno", last)
            inside = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = f"{function}.{child.name}".lstrip(".")
            elif function and not docstring and not piece and (kind := kind_of(child)):
                yield Place(child, node, kind, function, first, end)
            yield from places(child, inside, first, end)


def constants(tree: ast.Module) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """Yield the SQL that a module keeps in names: name, text, and the lines that use it."""
    inside = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                used = {
                    node.lineno
                    for function in inside
                    for node in ast.walk(function)
                    if isinstance(node, ast.Name) and node.id == name
                }
                if used and SQL.search(text):
                    yield name, text, tuple(sorted(used))


def mutants(path: str) -> list[Mutant]:
    """Return all mutants of a module; those of its constants have numbers below 0."""
    tree = ast.parse((ROOT / path).read_text())
    found = [
        Mutant(path, -1 - number, "sql", name, lines)
        for name, text, lines in constants(tree)
        for number in range(len(OPERATOR.findall(text)))
    ]
    return found + [
        Mutant(path, number, one.kind, one.function, tuple(range(one.line, one.last + 1)))
        for number, one in enumerate(places(tree))
    ]


def changed_tree(mutant: Mutant) -> ast.Module:
    """Return the module of a mutant with its change."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    place = next(one for number, one in enumerate(places(tree)) if number == mutant.number)
    place.change(random.Random(str(mutant)))
    return ast.fix_missing_locations(tree)


def changed_text(mutant: Mutant) -> tuple[str, str]:
    """Return the text of a mutant's constant before and after its change."""
    tree = ast.parse((ROOT / mutant.path).read_text())
    text = next(text for name, text, _ in constants(tree) if name == mutant.function)
    return text, replaced(text, [*OPERATOR.finditer(text)][-1 - mutant.number])


def sample(size: int, seed: int, chosen: Sequence[str] = ()) -> list[Mutant]:
    """Draw about `size` mutants of all rooms, or of the chosen paths; the same for a seed."""
    rooms: defaultdict[str, list[Mutant]] = defaultdict(list)
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT).as_posix()
            if not chosen or path.startswith(tuple(chosen)):
                for one in mutants(path):
                    if one.kind != "text" or random.Random(str(one)).random() < TEXTS:
                        rooms[one.room].append(one)
    total = sum(map(len, rooms.values()))
    drawn: list[Mutant] = []
    for room, all_of_it in sorted(rooms.items()):
        many = min(len(all_of_it), max(FEWEST, round(size * len(all_of_it) / total)))
        drawn += random.Random(f"{seed} {room}").sample(all_of_it, many)
    random.Random(seed).shuffle(drawn)
    return drawn


def table(results: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield the lines of the report."""
    rooms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in results:
        rooms[one["room"]][one["result"]] += 1
        rooms["all rooms"][one["result"]] += 1
    for room, counts in sorted(rooms.items(), key=lambda item: (item[0] == "all rooms", item[0])):
        rest = f"{counts['survived']} survived, {counts['not entered']} not entered"
        yield f"{counts['killed'] / counts.total():6.1%} of {counts.total():5}  {room} ({rest})"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--sample", type=int, default=1500, help="about so many mutants")
    parser.add_argument("--seed", type=int, default=1, help="another seed is another sample")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="keep the lines of the last run")
    parser.add_argument("--verbose", action="store_true", help="name those that nobody noticed")
    parser.add_argument("paths", nargs="*", help="beginnings of paths; all rooms by default")
    options = parser.parse_args(arguments)
    pytest = [sys.executable, "-m", "pytest", *TESTS, "-p", "tests.support.mutant_runs"]
    if not options.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        subprocess.run([*pytest, "-n", str(options.processes + 1), "--lines"], cwd=ROOT, check=True)
    for old in FOLDER.glob("tried-*"):
        old.unlink()
    shares = [f"{number}/{options.processes}" for number in range(options.processes)]
    drawn = ["--mutants", f"{options.sample} {options.seed} {' '.join(options.paths)}"]
    with tempfile.TemporaryDirectory(prefix="carteiro-mutants-") as home:
        running = [
            subprocess.Popen(
                [*pytest, *drawn, "--share", one, "--basetemp", f"{home}/{one.partition('/')[0]}"],
                cwd=ROOT, stdout=subprocess.DEVNULL,
            )
            for one in shares
        ]  # fmt: skip
        # All of them end before any is judged.
        statuses = [process.wait() for process in running]
    if any(statuses):
        raise SystemExit("a process that tries mutants failed")
    texts = [file.read_text() for file in FOLDER.glob("tried-*")]
    results = [json.loads(line) for text in texts for line in text.splitlines()]
    print(*table(results), sep=os.linesep)
    if options.verbose:
        print(*(one["mutant"] for one in results if one["result"] != "killed"), sep=os.linesep)


if __name__ == "__main__":
    main(sys.argv[1:])

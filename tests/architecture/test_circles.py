"""No circular imports, and every module can be imported first."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, ROOT, modules

Graph = Mapping[str, Set[str]]


def name_of(path: Path) -> str:
    """Return the dotted name of a module file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_in(source: str, names: Set[str]) -> set[str]:
    """Return which of the modules `names` a source imports, at the top or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in names else node.module)
    return found & names


def graph_of(package: str) -> Graph:
    """Map each module of `package` to the modules of it that it imports."""
    sources = {name_of(path): (ROOT / path).read_text() for path in modules()}
    own = {name for name in sources if name.split(".")[0] == package}
    return {name: imports_in(sources[name], own) for name in own}


def circles_in(graph: Graph) -> list[list[str]]:
    """Return groups of modules with circular imports, and modules that import themselves."""
    left = {name: set(targets) for name, targets in graph.items()}
    reached: dict[str, set[str]] = {}
    for start in left:
        seen: set[str] = set()
        waiting = list(left[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += left[name]
        reached[start] = seen
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in left
        if name in reached[name]
    }
    return [list(group) for group in sorted(groups)]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_circle_of_imports(package: str) -> None:
    graph = graph_of(package)
    assert len(graph) > 50, "too few modules were found to say anything"
    assert circles_in(graph) == []


def test_circles_are_detected() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"d"}, "e": {"a"}}
    assert circles_in(graph) == [["b", "c"], ["d"]]
    names = {"p", "p.a", "p.b", "p.c"}
    source = "import p.a\nfrom p import b\ndef f():\n    from p.c import x\n    from q import z\n"
    assert imports_in(source, names) == {"p.a", "p.b", "p.c"}


FIRST = """
import importlib, sys
for name in sys.argv[2:]:
    for known in [known for known in sys.modules if known.split(".")[0] == sys.argv[1]]:
        del sys.modules[known]
    importlib.import_module(name)
"""


@pytest.mark.proof
@pytest.mark.parametrize("package", PACKAGES[:1])
def test_each_module_can_be_imported_first(package: str) -> None:
    """A package and a module inside it can be imported in either order."""
    names = sorted(name for name in graph_of(package) if not name.endswith("__main__"))
    done = subprocess.run(
        [sys.executable, "-c", FIRST, package, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr

"""Time and randomness are passed as arguments: only two modules may read them from the machine."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.tree import ROOT, modules

ALLOWED = {"outbox/clock.py", "outbox/ids.py"}
WHOLE_MODULES = {"random", "secrets"}
CALLS = {
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.getrandom",
    "os.urandom",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.time",
    "time.time_ns",
    "uuid.uuid1",
    "uuid.uuid4",
}
ASKS = re.compile(
    r"^ *(?:from|import)\b.*\b(?:datetime|os|random|secrets|time|uuid)\b", re.MULTILINE
)
"""To parse all modules takes a second, and most import none of these."""


def forbidden_in(source: str) -> list[str]:
    """Return the uses of the machine's clock or randomness in `source`, as `line: dotted.name`."""
    if not ASKS.search(source):
        return []
    tree = ast.parse(source)
    names: dict[str, str] = {}
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                if alias.name.split(".")[0] in WHOLE_MODULES:
                    found.append(f"{node.lineno}: {alias.name}")
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if node.module.split(".")[0] in WHOLE_MODULES:
                found.append(f"{node.lineno}: {node.module}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            dotted = _dotted(node, names)
            if dotted in CALLS:
                found.append(f"{node.lineno}: {dotted}")
    return found


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, names)
        return f"{base}.{node.attr}" if base else None
    return None


def test_only_clock_and_ids_ask_the_machine() -> None:
    found = [
        f"{path}:{fault}"
        for path in modules()
        if path.as_posix() not in ALLOWED
        for fault in forbidden_in((ROOT / path).read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()",
        "import time as t\nt.monotonic()",
        "from time import time_ns as now\nnow()",
        "from datetime import datetime\ndatetime.now()",
        "import datetime\ndatetime.datetime.now()",
        "import os\nf = os.urandom",
        "import random",
        "from secrets import token_hex",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_each_workaround_is_detected(source: str) -> None:
    assert forbidden_in(source)


def test_arguments_pass() -> None:
    source = (
        "from datetime import datetime\ndef f(clock): return datetime.fromtimestamp(clock.wall())"
    )
    assert forbidden_in(source) == []

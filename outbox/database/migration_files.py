"""The files of migrations: what each does, and the checksum by which databases know it.

An SQL file has statements for both engines. A Python file has a function
`async def step(tx) -> bool`, for what SQL cannot compute: it does one batch per transaction, finds
by itself what is left to do, and returns whether there is more.

A line `-- additive` in a file says that the release before works on this schema too.
"""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock

from outbox.database.sql import translate
from outbox.database.transaction import Engine, Tx
from outbox.errors import CannotStart

DIGESTS = "digests.txt"
"""A file beside the migrations with a line for each: its name, the checksum of its statements, and
the SHA-256 of each text that was released with these statements."""

_PARSER = Lock()
"""CPython 3.11 counts the depth of what it parses for all threads together: two may not at once."""
_NAME = re.compile(r"(\d{4})_\w+\.(?:sql|py)")
_TRIGGER = re.compile(r"\s*create trigger\b.*\bbegin\b", re.S | re.I)
_ADDITIVE = re.compile(r"^-- additive\b", re.M)
_QUOTED = re.compile(r"('[^']*'|\"[^\"]*\")")
_ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file of a component."""

    component: str
    number: int
    name: str
    text: str
    step: Callable[[Tx], Awaitable[bool]] | None = None
    """Of a Python file, in place of statements."""
    released: frozenset[str] = frozenset()
    """SHA-256 of each released text of these statements, as releases up to 0.1 stored it."""

    @property
    def checksum(self) -> str:
        """SHA-256 of what the file does: comments and white space do not count."""
        if self.step is not None:
            return _sha256(_code(self.text))
        return _sha256("\n".join(_plain(s) for e in _ENGINES for s in self.statements(e)))

    @property
    def additive(self) -> bool:
        """Whether the release before works on the schema that this migration makes."""
        return _ADDITIVE.search(self.text) is not None

    def is_of(self, checksum: str) -> bool:
        """Return whether a database with this checksum has this migration."""
        return checksum == self.checksum or checksum in self.released

    def statements(self, engine: Engine) -> list[str]:
        """Return the statements for `engine`. A statement ends with `;` at the end of a line."""
        if self.step is not None:
            return []
        statements: list[str] = []
        lines: list[str] = []
        for line in translate(self.text, engine).splitlines():
            lines.append(line)
            text = "\n".join(lines)
            if line.rstrip().endswith(";") and not _open(text):
                statements.append(text.strip().removesuffix(";"))
                lines = []
        return statements + ["\n".join(lines)] * bool("".join(lines).strip())


def _open(text: str) -> bool:
    """Return whether `text` ends inside a quoted function or a trigger body."""
    body = _TRIGGER.match(text) is not None and not text.rstrip().lower().endswith("\nend;")
    return body or text.count("$$") % 2 == 1


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(statement: str) -> str:
    """Return a statement with single spaces outside quotes."""
    parts = _QUOTED.split(statement)
    parts[::2] = [re.sub(r"\s+", " ", part) for part in parts[::2]]
    return "".join(parts).strip()


def _code(source: str) -> str:
    """Return the lines of a Python file without comments, docstrings and empty lines.

    The text itself, not a form of the parser, so that each version of Python has the same.
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    with _PARSER:
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                assert first.end_lineno is not None
                lines[first.lineno - 1 : first.end_lineno] = [""] * (
                    first.end_lineno - first.lineno + 1
                )
    return "\n".join(line.rstrip() for line in lines if line.strip())


def read_migrations(component: str, folder: Path) -> list[Migration]:
    """Return the migrations of a folder in order. Raise CannotStart for gaps or invalid names."""
    released = released_digests(folder)
    migrations: list[Migration] = []
    for path in sorted((*folder.glob("*.sql"), *folder.glob("*.py"))):
        match = _NAME.fullmatch(path.name)
        if match is None or int(match[1]) != len(migrations) + 1:
            raise CannotStart(f"the migration {path.name} is misnamed or out of sequence")
        text = path.read_text(encoding="utf-8")
        step = _step(path) if path.suffix == ".py" else None
        _, texts = released.get(path.stem, ("", frozenset()))
        migrations.append(Migration(component, int(match[1]), path.stem, text, step, texts))
    return migrations


def released_digests(folder: Path) -> Mapping[str, tuple[str, frozenset[str]]]:
    """Return of each listed migration the checksum of its statements and of its released texts."""
    file = folder / DIGESTS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    entries = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: (statements, frozenset(texts)) for name, statements, *texts in entries}


def _step(path: Path) -> Callable[[Tx], Awaitable[bool]]:
    spec = spec_from_file_location(f"migration_{path.stem}", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[Tx], Awaitable[bool]] = module.step
    return step

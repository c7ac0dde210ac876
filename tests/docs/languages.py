"""The languages of docs/examples/receivers: their files, their tools, and how to run each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.docs.pages import text_of
from tests.support.requirements import need

PAGE = "docs/how-to/verify-signatures.md"
PROGRAMS = ROOT / "docs/examples/receivers"
HARNESSES = Path(__file__).parent / "harness"


@dataclass(frozen=True)
class Language:
    """The names of its files, what must be installed, and the command of the harness."""

    suffix: str
    tools: tuple[str, ...]
    command: str
    capital: bool = False
    """Whether its file names start with a capital letter."""

    def file(self, stem: str) -> str:
        return f"{stem.capitalize() if self.capital else stem}.{self.suffix}"


LANGUAGES = {
    "python": Language("py", (), "python3 harness.py"),
    "node": Language("mjs", ("node",), "node harness.mjs"),
    "go": Language("go", ("go",), "go run harness.go verify.go"),
    "php": Language("php", ("php",), "php harness.php"),
    "ruby": Language("rb", ("ruby",), "ruby harness.rb"),
    "java": Language(
        "java", ("javac", "java"), "javac Verify.java Harness.java && java Harness", capital=True
    ),
    "csharp": Language(
        "cs",
        ("mcs", "mono"),
        "mcs -out:harness.exe Verify.cs Harness.cs && mono harness.exe",
        capital=True,
    ),
    "shell": Language("sh", ("openssl",), "sh harness.sh"),
}
SERVERS = tuple(name for name in LANGUAGES if name != "shell")
"""Those with a receiver; the shell only checks by hand."""


def program(kind: str, language: str) -> str:
    """The `verify` or the `receiver` of a language."""
    return (PROGRAMS / language / LANGUAGES[language].file(kind)).read_text()


def command(language: str) -> str:
    """The command of a language in the page's table."""
    [found] = re.findall(rf"\(\.\./examples/receivers/{language}\) \| `(.*)` \|", text_of(PAGE))
    return str(found)


def prepare(language: str, folder: Path) -> Language:
    """Save the page's `verify` of a language in the folder; skip without its tools."""
    chosen = LANGUAGES[language]
    for tool in chosen.tools:
        need(tool)
    (folder / chosen.file("verify")).write_text(program("verify", language))
    return chosen

"""Programs of other languages: generators of clients, compilers, and the clients they make."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.support.node import FOLDER, package
from tests.support.operations import FOLDER as DOCUMENTS
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

CODEGEN = ROOT / ".venv" / "codegen" / "bin"
"""The environment of generators; ariadne-codegen needs another graphql-core than we do."""
SOURCES = FOLDER / "purchase"
TSC = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
STRICT = ("--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
          "--lib", "es2022,dom,dom.iterable")  # fmt: skip


def codegen(program: str) -> str:
    """Return a program of the environment of generators, or skip and name it."""
    command = CODEGEN / program
    if not command.exists():
        pytest.skip(f"needs {program}: make test installs it into .venv/codegen")
    return str(command)


def run(words: Sequence[str], folder: Path, text: str = "", **settings: str) -> str:
    """Run a program to its end with `text` on its input; return what it printed."""
    done = subprocess.run(
        words, cwd=folder, input=text, capture_output=True, text=True, timeout=HANG_SECONDS,
        env=os.environ | {"PATH": f"{CODEGEN}:{os.environ['PATH']}"} | settings, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


async def told(words: Sequence[object], folder: Path, text: str = "") -> dict[str, Any]:
    """Run a program in a thread, because the server may run on this loop; return its figures."""
    found: dict[str, Any] = json.loads(
        await asyncio.to_thread(run, [*map(str, words)], folder, text)
    )
    return found


async def generate(origin: str, folder: Path, documents: Path = DOCUMENTS) -> dict[str, Any]:
    """Let @graphql-codegen make a client, with a method for each document; return its figures."""
    for name in ("core", "typescript-operations", "typescript-generic-sdk"):
        package(f"@graphql-codegen/{name}")
    schema = f"{origin}/graphql/schema.graphql"
    words = (need("node"), SOURCES / "generate.mjs", schema, documents, folder / "client.ts")
    return await told(words, FOLDER)


async def compiled(folder: Path, *programs: str) -> None:
    """Compile the client in `folder` and programs that use it; fails at the first error."""
    package("typescript")
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    files = [str(folder / name) for name in ("client.ts", *programs)]
    words = [need("node"), str(TSC), *STRICT, "--outDir", str(folder), *files]
    await asyncio.to_thread(run, words, FOLDER)

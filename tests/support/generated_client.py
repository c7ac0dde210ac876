"""A TypeScript client that @graphql-codegen generates from the served schema, and its purchase.

The client has a method for each document of tests/gateway/graphql/operations. The strict compiler
checks it, and the purchase that uses it, before node runs them.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.node import FOLDER, package
from tests.support.operations import FOLDER as DOCUMENTS
from tests.support.requirements import need

PACKAGES = (
    "@graphql-codegen/core",
    "@graphql-codegen/typescript-operations",
    "@graphql-codegen/typescript-generic-sdk",
    "typescript",
)
SOURCES = FOLDER / "purchase"
TSC = FOLDER / "node_modules" / "typescript" / "bin" / "tsc"
STRICT = (
    "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext",
    "--lib", "es2022,dom,dom.iterable",
)  # fmt: skip


async def generate(origin: str, folder: Path, documents: Path = DOCUMENTS) -> dict[str, Any]:
    """Generate the client of the server at `origin` into `folder`; return its figures."""
    client = folder / "client.ts"
    made = await _node(
        SOURCES / "generate.mjs", f"{origin}/graphql/schema.graphql", documents, client
    )
    found: dict[str, Any] = json.loads(made)
    return found


async def compiled(folder: Path) -> None:
    """Compile the client and the purchase in `folder`; fails at the first error of a type."""
    shutil.copy(SOURCES / "purchase.ts", folder / "purchase.ts")
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    await _node(TSC, *STRICT, "--outDir", folder, folder / "client.ts", folder / "purchase.ts")


async def compiled_alone(folder: Path) -> None:
    """Compile the client in `folder`; fails at the first error of a type."""
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    (folder / "package.json").write_text('{"type": "module"}')
    await _node(TSC, *STRICT, "--outDir", folder, folder / "client.ts")


async def purchase(origin: str, hostname: str, coupon: str, folder: Path) -> dict[str, Any]:
    """Buy the newest product of a store with a coupon; return what the client saw."""
    done = await _node(folder / "purchase.js", origin, hostname, coupon)
    found: dict[str, Any] = json.loads(done)
    return found


async def _node(script: Path, *words: object) -> str:
    """Run a script in a thread, because the server may run on this loop; return its output."""
    node = need("node")
    for name in PACKAGES:
        package(name)
    done = await asyncio.to_thread(
        subprocess.run, [node, str(script), *map(str, words)],
        cwd=FOLDER, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout

"""Runs the receivers of docs/examples that need a framework, each as its own process.

Laravel and Rails are not installed: serve.php and serve.rb stand in for what the examples use of
them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.docs import test_receivers
from tests.docs.test_generated_clients import STRICT
from tests.support.generated_client import TSC
from tests.support.node import FOLDER, package
from tests.support.process import free_port
from tests.support.requirements import need
from tests.support.typed_clients import CODEGEN, codegen

EXAMPLES = ROOT / "docs" / "examples"
HERE = Path(__file__).parent
FRAMEWORKS = {
    "FastAPI": (EXAMPLES / "python/receiver.py",),
    "Express": (EXAMPLES / "typescript/receiver.ts",),
    "Django": (
        EXAMPLES / "django/carteiro.py", EXAMPLES / "receivers/python/verify.py",
        HERE / "serve_django.py", HERE / "urls.py",
    ),
    "Next.js": (
        EXAMPLES / "nextjs/route.js", EXAMPLES / "receivers/node/verify.mjs", HERE / "serve.mjs",
    ),
    "Laravel": (
        EXAMPLES / "laravel/VerifyCarteiro.php", EXAMPLES / "receivers/php/verify.php",
        HERE / "serve.php",
    ),
    "Rails": (
        EXAMPLES / "rails/carteiro_verified.rb", EXAMPLES / "receivers/ruby/verify.rb",
        HERE / "serve.rb",
    ),
}  # fmt: skip
"""The files of each, which stand beside each other."""


@asynccontextmanager
async def receiving(kind: str, folder: Path, secret: str) -> AsyncIterator[tuple[Process, str]]:
    """Run a receiver; its process and its URL."""
    port = free_port()
    for file in FRAMEWORKS[kind]:
        shutil.copy(file, folder)
    complaints = folder / "complaints"
    with complaints.open("wb") as err:
        process = await asyncio.create_subprocess_exec(
            *command(kind, folder, port), cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=err,
            env=os.environ
            | {"WEBHOOK_SECRET": secret, "PORT": str(port), "TMPDIR": str(folder)},
            start_new_session=True,
        )  # fmt: skip
    try:
        await test_receivers.listening(port, process, complaints)
        yield process, f"http://127.0.0.1:{port}/"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


def command(kind: str, folder: Path, port: int) -> list[str]:
    """Return what starts a receiver in the folder of its files."""
    match kind:
        case "FastAPI":
            return [codegen("uvicorn"), "receiver:app", "--port", str(port)]
        case "Django":
            codegen("django-admin")
            return [codegen("python"), "serve_django.py"]
        case "Express":
            package("express")
            compiled(folder)
            return [need("node"), "receiver.js"]
        case "Next.js":
            # Next.js itself reads .js files as modules.
            (folder / "route.js").rename(folder / "route.mjs")
            return [need("node"), "serve.mjs"]
        case "Laravel":
            return [need("php"), "-S", f"127.0.0.1:{port}", "serve.php"]
        case _:
            return [need("ruby"), "serve.rb"]


async def printed(process: Process, folder: Path) -> str:
    """End a receiver that leads its session; return what it has printed."""
    os.killpg(process.pid, 15)
    assert process.stdout is not None
    return (await process.stdout.read()).decode() + (folder / "complaints").read_text()


def compiled(folder: Path) -> None:
    """Compile the programs of a folder strictly, each beside its source."""
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    sources = sorted(path.name for path in folder.glob("*.ts"))
    words = (*STRICT, "--types", "node", "--esModuleInterop", "--skipLibCheck")
    run([need("node"), str(TSC), *words, *sources], folder)


def run(words: Sequence[str], folder: Path, **settings: str) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"PATH": f"{CODEGEN}:{os.environ['PATH']}"} | settings,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout

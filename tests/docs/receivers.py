"""Runs the receivers of the docs, each as its own process.

Laravel and Rails are not installed: serve.php and serve.rb stand in for what the examples use of
them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.docs.languages import SERVERS, command, prepare, program
from tests.support.generators import TSC, codegen, run
from tests.support.node import FOLDER, package
from tests.support.process import free_port
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

EXAMPLES = ROOT / "docs" / "examples"
HERE = Path(__file__).parent / "frameworks"
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
KINDS = (*SERVERS, *FRAMEWORKS)
STRICT = (
    "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "commonjs",
    "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable",
)  # fmt: skip


@dataclass(frozen=True)
class Running:
    """A program that listens."""

    process: Process
    port: int
    complaints: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    async def printed(self) -> str:
        """End it; return what it has printed."""
        os.killpg(self.process.pid, 15)
        assert self.process.stdout is not None
        # A line may be cut where it ended.
        said = (await self.process.stdout.read()).decode(errors="replace")
        return said + self.complaints.read_text()


@asynccontextmanager
async def started(
    words: Sequence[str], folder: Path, port: int, **settings: str
) -> AsyncIterator[Running]:
    """Run a program in a folder until the test ends it; return when it listens."""
    # Apart, because traces of other threads would stand in the middle of a line.
    complaints = folder / "complaints"
    with complaints.open("ab") as err:
        process = await asyncio.create_subprocess_exec(
            *words, cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=err, start_new_session=True,
            env=os.environ | {"TMPDIR": str(folder), "PORT": str(port)} | settings,
        )  # fmt: skip
    try:
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                assert process.returncode is None, complaints.read_text()
                with suppress(ConnectionRefusedError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    break
                await asyncio.sleep(0.05)
        writer.close()
        await writer.wait_closed()
        yield Running(process, port, complaints)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        await process.wait()


@asynccontextmanager
async def running(
    kind: str, folder: Path, secret: str, *, verify: str = "", receiver: str = ""
) -> AsyncIterator[Running]:
    """Run a receiver of a page by the page's command, or that of a framework.

    `verify` and `receiver` are texts in place of the page's.
    """
    port = free_port()
    if kind in FRAMEWORKS:
        for file in FRAMEWORKS[kind]:
            shutil.copy(file, folder)
        words = _framework(kind, folder, port)
    else:
        chosen = prepare(kind, folder)
        if verify:
            (folder / chosen.file("verify")).write_text(verify)
        text = (receiver or program("receiver", kind)).replace("9000", str(port))
        (folder / chosen.file("receiver")).write_text(text)
        words = ["bash", "-ec", command(kind).replace("9000", str(port))]
    settings = {"GOTOOLCHAIN": "local", "WEBHOOK_SECRET": secret}
    async with started(words, folder, port, **settings) as there:
        yield there


def _framework(kind: str, folder: Path, port: int) -> list[str]:
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


def compiled(folder: Path) -> None:
    """Compile the programs of a folder strictly, each beside its source."""
    (folder / "node_modules").symlink_to(FOLDER / "node_modules")
    sources = sorted(path.name for path in folder.glob("*.ts"))
    words = (*STRICT, "--types", "node", "--esModuleInterop", "--skipLibCheck")
    run([need("node"), str(TSC), *words, *sources], folder)

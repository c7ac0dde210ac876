"""What other HTTP clients make of raw answers: curl, Go's net/http and Node's fetch.

A verdict is the status that the client reports, with ` broken` when it fails afterwards, or
`refused`. They were recorded with curl 7.88, Go 1.26 and Node 20.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.hostilities import says, says_and_closes
from tests.support.receiver import hostile

CLIENTS = ("curl", "go", "node")
FILE = Path(__file__).parents[1] / "outbox" / "sending" / "answers.jsonl"
AT_ONCE = 8

CURL = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "9", "-d", "{}")
GO = """package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	for _, url := range os.Args[1:] {
		response, err := http.DefaultClient.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil {
			fmt.Println("refused")
			continue
		}
		verdict := fmt.Sprint(response.StatusCode)
		if _, err = io.Copy(io.Discard, response.Body); err != nil {
			verdict += " broken"
		}
		fmt.Println(verdict)
	}
}
"""
NODE = """
for (const url of process.argv.slice(1)) {
  let verdict = "refused";
  try {
    const signal = AbortSignal.timeout(9000);
    const response = await fetch(url, { method: "POST", body: "{}", signal });
    verdict = `${response.status} broken`;
    await response.arrayBuffer();
    verdict = `${response.status}`;
  } catch {}
  console.log(verdict);
}
"""


@dataclass(frozen=True)
class Raw:
    """The bytes of an answer, whether the connection stays open behind them, and its verdicts."""

    name: str
    data: bytes
    stays: bool
    verdicts: dict[str, str]
    """Of the other clients."""
    ours: str
    """The status that decides, or `refused`."""
    says: str
    """What the attempt says beside it."""
    body: str
    why: str
    """Why ours is another one than some of theirs."""


def raw_answers() -> list[Raw]:
    """Return the recorded answers."""
    return [_raw(json.loads(line)) for line in FILE.read_text().splitlines()]


def _raw(line: dict[str, object]) -> Raw:
    parts = line["raw"]
    assert isinstance(parts, list)
    data = "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)
    return Raw(
        str(line["name"]), data.encode("latin-1"), bool(line.get("stays")),
        {client: str(line[client]) for client in CLIENTS}, str(line["ours"]),
        str(line.get("says", "")), str(line.get("body", "")), str(line.get("why", "")),
    )  # fmt: skip


@asynccontextmanager
async def served(answers: Sequence[Raw]) -> AsyncIterator[list[str]]:
    """Run a receiver for each of them; yield their URLs."""
    async with AsyncExitStack() as stack:
        urls = []
        for one in answers:
            script = (says if one.stays else says_and_closes)(one.data)
            urls.append((await stack.enter_async_context(hostile(script))).url)
        yield urls


async def verdicts(urls: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """Return what each client makes of the answers at these URLs."""
    program = folder / "verdicts.go"
    program.write_text(GO)
    limit = asyncio.Semaphore(AT_ONCE)

    async def by_curl(url: str) -> str:
        async with limit:
            told, code = await _run(*CURL, url)
        if code and told in ("000", "100", "103"):
            return "refused"
        return f"{int(told)}{' broken' * bool(code)}"

    curl = await asyncio.gather(*map(by_curl, urls))
    go, _ = await _run("go", "run", str(program), *urls)
    node, _ = await _run("node", "--input-type=module", "-e", NODE, *urls)
    return {"curl": curl, "go": go.splitlines(), "node": node.splitlines()}


async def _run(*command: str) -> tuple[str, int | None]:
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    told, _ = await process.communicate()
    return told.decode(), process.returncode

"""What a reader does with a page: types its commands, saves its files, uses the console."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import aiohttp

from tests.architecture.tree import ROOT
from tests.docs.pages import Block
from tests.support.console import Forms
from tests.support.process import free_port
from tests.support.waiting import HANG_SECONDS

PASSWORD = b"correct horse battery\n"
PROMPTS = (b"Password: ", b"Repeat password: ")
# Takes the terminal on standard input as its own, so that a command can ask for a password there.
ON_TERMINAL = (
    "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execvp('bash', ['bash', *sys.argv[1:]])"
)
CHANGES = (
    (re.compile(r"\bcrt_[\w-]+"), "crt_K"),
    (re.compile(r"\b[0-9a-f]{24}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "INSTANT"),
    (re.compile(r"\b1[78]\d{8}\b"), "SECONDS"),
    (re.compile(r"\bcarteiro \d+\.\d+\.\d+", re.IGNORECASE), "carteiro VERSION"),
)
"""What differs from run to run."""


def plain(text: str) -> str:
    """Text without what differs from run to run; JSON in one spelling."""
    for pattern, word in CHANGES:
        text = pattern.sub(word, text)
    lines = [re.sub(r"\s+", " ", line.strip()) for line in text.strip().splitlines()]
    joined = " ".join(lines) if text.lstrip().startswith(("{", "[")) else "\n".join(lines)
    return re.sub(r"\s*([{}\[\],:])\s*", r"\1", joined)


def agrees(told: str, printed: str) -> bool:
    """Whether a page tells what was printed; … in it stands for anything."""
    pattern = ".*".join(re.escape(part) for part in plain(told).split("…"))
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None


class Terminal:
    """A command that stays: its process and what it has printed."""

    def __init__(self, words: str, folder: Path, environment: dict[str, str], name: str) -> None:
        self.out = folder / f"{name}.out"
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(
                ["bash", "-c", words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    @property
    def text(self) -> str:
        """Its lines but those of the log, which are JSON with a time."""
        lines = self.out.read_text().splitlines()
        return "\n".join(line for line in lines if not line.startswith('{"ts"'))

    def until(self, told: str) -> None:
        """Wait until it has printed what the page tells."""
        end = time.monotonic() + HANG_SECONDS
        while not agrees(told, self.text):
            assert self.process.poll() is None, self.out.read_text()
            assert time.monotonic() < end, f"told\n{told}\nprinted\n{self.text}"
            time.sleep(0.05)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


class Session:
    """A folder like a fresh clone, its ports, and the terminals that are open in it."""

    def __init__(self, folder: Path, *, activated: bool = False) -> None:
        """With `.venv/bin` on the search path or not."""
        self.folder = folder
        self.terminals: dict[str, tuple[Terminal, str]] = {}
        self.port, self.receiver_port = free_port(), free_port()
        self.secret = ""
        self.webhook = ""
        self.printed = ""
        self.last: Terminal | None = None
        for entry in ROOT.iterdir():
            if entry.name not in ("data", "config.local.toml", ".git", ".venv"):
                (folder / entry.name).symlink_to(entry)
        (folder / ".venv").mkdir()
        for entry in Path(sys.prefix).iterdir():
            if not entry.name.startswith(".installed"):
                (folder / ".venv" / entry.name).symlink_to(entry)
        # A new stamp: the packages are there, and nothing of a test run may install any.
        (folder / ".venv" / ".installed").touch()
        # Under `make test` the commands of this make would reach the `make` of the page.
        kept = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("CARTEIRO_", "MAKE", "MFLAGS")) and k != "ARGS"
        }
        ours = str(Path(sys.prefix) / "bin")
        path = [each for each in kept.get("PATH", "").split(os.pathsep) if each != ours]
        self.environment = kept | {
            "CARTEIRO_SERVER__PORT": str(self.port),
            "PATH": os.pathsep.join([ours, *path] if activated else path),
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        for terminal, _ in reversed(self.terminals.values()):
            terminal.end()

    def here(self, text: str) -> str:
        """A page's text with the ports and the secret of this session."""
        text = text.replace(":8080", f":{self.port}").replace("whsec_…", self.secret)
        return re.sub(r"\b9000\b", str(self.receiver_port), text)

    def stay(self, name: str, words: str) -> None:
        """Run a command in a terminal of its own."""
        terminal = Terminal(self.here(words), self.folder, self.environment, name)
        self.terminals[name] = (terminal, words)
        self.last = terminal

    def restart(self, name: str, told: str) -> None:
        """End a terminal's command, and run it again until it prints `told`."""
        terminal, words = self.terminals[name]
        terminal.end()
        self.stay(name, words)
        self.terminals[name][0].until(told)

    def run(self, block: Block) -> None:
        """Type a block of a page."""
        self.type(block.text, str(block))

    def type(self, text: str, where: str = "") -> None:
        """Type commands into a shell. Their variables stay for the next ones."""
        script = self.folder / "block.sh"
        script.write_text(
            f"set -ea\n[ ! -e .variables ] || . ./.variables\n{self.here(text)}\n"
            "export -p > .variables\n"
        )
        out, err = self.folder / "block.out", self.folder / "block.err"
        ours, theirs = os.openpty()
        with out.open("wb") as printed, err.open("wb") as complaints:
            process = subprocess.Popen(
                [sys.executable, "-c", ON_TERMINAL, str(script)], cwd=self.folder,
                env=self.environment, stdin=theirs, stdout=printed, stderr=complaints,
            )  # fmt: skip
        os.close(theirs)
        try:
            self._answer(ours)
            status = process.wait(HANG_SECONDS)
        finally:
            os.close(ours)
            if process.poll() is None:
                process.kill()
        assert status == 0, f"{where}: status {status}\n{out.read_text()}{err.read_text()}"
        self.printed, self.last = out.read_text(), None

    def _answer(self, terminal: int) -> None:
        """Give the password whenever it is asked for, until the terminal is closed."""
        heard, end = b"", time.monotonic() + HANG_SECONDS
        while True:
            ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0))
            assert ready, f"the command waits for input; the terminal shows {heard!r}"
            try:
                heard += os.read(terminal, 1024)
            except OSError:  # nobody has it open any more
                return
            if heard.endswith(PROMPTS):
                os.write(terminal, PASSWORD)
                heard = b""

    def prints(self, block: Block) -> None:
        """Compare a page's output with that of the command before."""
        told = self.here(block.text)
        if self.last is not None:
            self.last.until(told)
        else:
            assert agrees(told, self.printed), f"{block}: told\n{told}\nprinted\n{self.printed}"

    def save(self, block: Block) -> None:
        (self.folder / block.name).write_text(self.here(block.text))

    async def step(self, words: str) -> None:
        """Do in the console what the page asks for."""
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(self.url, cookie_jar=jar) as http:
            ana = Forms(http)
            await ana.sign_in("ana@example.com", PASSWORD.decode().strip())
            if words == "create a webhook":
                empty = await ana.get("/console/webhooks")
                page = await ana.submit(
                    "/console/webhooks", at=empty.link("New webhook"),
                    url=f"http://127.0.0.1:{self.receiver_port}/", events="contact.created",
                )  # fmt: skip
                secret = page.test_id("webhook-secret")
                assert secret, page.html
                self.secret, self.webhook = secret, page.path.partition("?")[0]
            else:
                assert words == "send a test event", words
                path = self.webhook
                page = await ana.submit(f"{path}/test", at=path, event="contact.created")
                assert page.status == 200

"""The gateway of the demo: runs the real command in a separate process and uses its console."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import aiohttp

START_SECONDS = 90.0
STOP_SECONDS = 20.0
SERVE = ("gateway", "serve")


class DemoFault(Exception):
    """A fault that ends the demo; the text is one line for a person."""


@dataclass(frozen=True)
class Account:
    """The account that the demo signs in to."""

    email: str
    password: str


class Gateway:
    """`carteiro serve` on SQLite in `folder`; it may deliver to `receiver_port` of 127.0.0.1."""

    def __init__(
        self,
        folder: Path,
        receiver_port: int,
        port: int = 0,
        serve: Sequence[str] = SERVE,
    ) -> None:
        """`serve` is the module that serves, with its arguments."""
        self._serve = serve
        self.port = port or _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._log = folder / "gateway.log"
        self._process: Process | None = None
        # The demo ignores the CARTEIRO_ variables and the config.toml of its caller.
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CARTEIRO_")
        } | {
            "CARTEIRO_SERVER__HOST": "127.0.0.1",
            "CARTEIRO_SERVER__PORT": str(self.port),
            "CARTEIRO_SERVER__PUBLIC_URL": self.url,
            "CARTEIRO_DATABASE__URL": f"sqlite:///{folder / 'carteiro.db'}",
            "CARTEIRO_SECRETS__KEY_FILE": str(folder / "carteiro.key"),
            "CARTEIRO_EGRESS__ALLOW": f"127.0.0.1/32:{receiver_port}",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
            "CARTEIRO_RETRY__SCHEDULE": "1,2,4,8,15,30",
            # The demo asks for each delivery that has not arrived.
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

    async def start(self) -> None:
        """Start the gateway and wait until it is ready. Raise DemoFault with its last log line."""
        with self._log.open("ab") as log:
            earlier = log.tell()  # a folder that is used again has the log of the last demo
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self._serve),
                cwd=self._folder,
                env=self._environment,
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # the demo handles Ctrl-C of the terminal itself
            )
        try:
            async with asyncio.timeout(START_SECONDS), aiohttp.ClientSession() as http:
                while not (self._listens(earlier) and await self._ready(http)):
                    if self._process.returncode is not None:
                        raise DemoFault(f"the gateway did not start: {self._last_line()}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise DemoFault(f"the gateway is not ready after {START_SECONDS:.0f} s") from None

    @property
    def pid(self) -> int:
        """The id of the latest process."""
        assert self._process is not None, "it was not started"
        return self._process.pid

    async def ended(self) -> None:
        """Wait until the latest process has ended."""
        assert self._process is not None, "it was not started"
        await self._process.wait()

    async def stop(self) -> int:
        """Send SIGTERM and return the exit status; 0 is a complete shutdown."""
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        return self._process.returncode or 0

    async def command(self, *words: str, stdin: str = "") -> str:
        """Run `carteiro …` with the same configuration and return its output. Raise DemoFault."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words),
            cwd=self._folder,
            env=self._environment,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
        )
        try:
            out, err = await process.communicate(stdin.encode())
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise DemoFault(f"carteiro {' '.join(words)}: {err.decode().strip()}")
        return out.decode().strip()

    def _last_line(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"

    def _listens(self, earlier: int) -> bool:
        """Whether our own process listens; another server may answer on a port in use."""
        with self._log.open("rb") as log:
            log.seek(earlier)
            return f"console at {self.url}/console".encode() in log.read()

    async def _ready(self, http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"{self.url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False


class Console:
    """A client of the console that works like a browser without scripts."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = aiohttp.ClientSession(
            cookie_jar=aiohttp.CookieJar(unsafe=True), headers={"Origin": url}
        )

    async def close(self) -> None:
        await self._http.close()

    async def sign_in(self, account: Account) -> None:
        """Sign in. Raise DemoFault when the console refuses it."""
        page = await self._submit(
            "/console/sign-in",
            "/console/sign-in",
            [("email", account.email), ("password", account.password)],
        )
        if "/console/sign-in" in page.forms:
            raise DemoFault("the console refused the sign-in")

    async def add_webhook(self, url: str, events: list[str]) -> str:
        """Create a webhook and return its secret. Raise DemoFault when the page shows none."""
        fields = [("url", url), *(("events", event) for event in events)]
        page = await self._submit("/console/webhooks/new", "/console/webhooks", fields)
        if not page.texts.get("webhook-secret"):
            raise DemoFault(f"the console created no webhook for {url}")
        return page.texts["webhook-secret"]

    async def _submit(self, form: str, action: str, fields: list[tuple[str, str]]) -> "Page":
        async with self._http.get(self._url + form) as answer:
            token = Page.read(await answer.text()).csrf_token
        data = aiohttp.FormData([*fields, ("csrf_token", token)])
        async with self._http.post(self._url + action, data=data) as answer:
            text = await answer.text()
            if answer.status >= 400:
                raise DemoFault(f"POST {action} returned {answer.status}")
            return Page.read(text)


class Page(HTMLParser):
    """The parts of a page that the demo reads: CSRF token, forms, elements with a data-testid."""

    def __init__(self) -> None:
        super().__init__()
        self.csrf_token = ""
        self.forms: set[str] = set()
        self.texts: dict[str, str] = {}
        self._open: tuple[str, str] | None = None

    @classmethod
    def read(cls, html: str) -> "Page":
        page = cls()
        page.feed(html)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "form":
            self.forms.add(attributes.get("action") or "")
        if tag == "input" and attributes.get("name") == "csrf_token":
            self.csrf_token = attributes.get("value") or ""
        name = attributes.get("data-testid")
        if name:
            self.texts[name] = attributes.get("value") or ""
            self._open = (tag, name)

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.texts[self._open[1]] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if self._open is not None and self._open[0] == tag:
            self._open = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

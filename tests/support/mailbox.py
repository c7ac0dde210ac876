"""An SMTP server on loopback that keeps the mails it gets, or refuses them."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from gateway.server.config import Mail
from tests.support.waiting import HANG_SECONDS

FROM = "shop@example.com"


class Page(HTMLParser):
    """The words, links and elements of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words = ""
        self.links: list[str] = []
        self.elements: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_data(self, data: str) -> None:
        self.words += data


def bodies(mail: EmailMessage) -> tuple[str, Page]:
    """Return both forms of a mail, which are alternatives of each other."""
    assert mail.get_content_type() == "multipart/alternative"
    text, html = mail.iter_parts()
    assert [part.get_content_type() for part in (text, html)] == ["text/plain", "text/html"]
    assert isinstance(text, EmailMessage)
    assert isinstance(html, EmailMessage)
    return text.get_content().replace("\r\n", "\n"), Page(html.get_content())


class Mailbox:
    """The mails, the senders, and the answers that the server gives."""

    def __init__(self) -> None:
        self.port = 0
        self.mails: list[EmailMessage] = []
        self.encrypted: list[bool] = []
        self.refusals: list[str] = []
        """Answers to the next RCPT commands, in place of acceptance."""
        self.tries = 0
        self._arrived = asyncio.Event()

    async def handle_RCPT(  # noqa: N802 - the server calls it by this name
        self, server: Any, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.tries += 1
        if self.refusals:
            return self.refusals.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        content = envelope.content
        assert isinstance(content, bytes)
        mail = message_from_bytes(content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.encrypted.append(session.ssl is not None)
        self._arrived.set()
        return "250 OK"

    async def next(self, count: int = 1) -> EmailMessage:
        """Wait until `count` mails have arrived; return the last of them."""
        async with asyncio.timeout(HANG_SECONDS):
            while len(self.mails) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.mails[count - 1]


def settings(box: Mailbox, **more: Any) -> Mail:
    """Return the settings of a server that sends mails to the box."""
    given: dict[str, Any] = {
        "host": "127.0.0.1", "port": box.port, "security": "none", "from_address": FROM,
    }  # fmt: skip
    return Mail(**(given | more))


@asynccontextmanager
async def mailbox(
    tls: ssl.SSLContext | None = None, login: tuple[str, str] | None = None
) -> AsyncIterator[Mailbox]:
    """Serve a mailbox until the block ends; with `tls` it requires STARTTLS."""
    box = Mailbox()

    def authenticate(
        server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        right = (data.login.decode(), data.password.decode()) == login
        return AuthResult(success=right, handled=False)

    def protocol() -> SMTP:
        return SMTP(
            box, hostname="127.0.0.1", enable_SMTPUTF8=True, tls_context=tls,
            require_starttls=tls is not None, auth_required=login is not None,
            authenticator=authenticate,
        )  # fmt: skip

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    box.port = server.sockets[0].getsockname()[1]
    try:
        yield box
    finally:
        server.close()
        await server.wait_closed()

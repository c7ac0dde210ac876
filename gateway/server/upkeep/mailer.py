"""Sends the queued mails by SMTP, on the leading node, one after the other.

They go to customers and buyers of stores, to the customers of quotes and invoices, to the owners of
webhooks, and to accounts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Literal

import aiosmtplib
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_fixed

from gateway.domain import queued_mail
from gateway.domain.accounts import account_letters, account_mails, password_resets
from gateway.domain.queued_mail import Letter, Post, Queued, QueuedMail
from gateway.domain.sales import document_letters, document_mails, order_mails
from gateway.domain.storefront.mail import mail_tokens, mails, order_letters
from gateway.domain.webhooks import notice_mails
from gateway.server.config import Mail
from gateway.server.telemetry.logs import logger
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.queue.state import notices

MOST = 50
"""Mails of one run of the duty; the next look continues."""
STEPS = 6
"""Commands of one mail, each with the timeout of the settings."""
FINAL = (aiosmtplib.SMTPRecipientRefused, aiosmtplib.SMTPDataError)
"""Refusals that concern one mail; every other failure may end when the operator mends it."""


CONNECTIONS = 2
"""Tries to connect for one attempt at a mail; the queue spaces the attempts."""
PAUSE_SECONDS = 0.1


class UnsafeAddress(Exception):
    """The address has an encoded word, which mail programs read as another address or header."""


Result = Literal["sent", "put_off", "given_up"]
Count = Callable[[str, Result], None]
"""Counts an attempt at a mail."""


Write = Callable[[Tx, QueuedMail, Post], Awaitable[Letter | None]]
"""Writes a mail; None when nobody should get it any more."""
WRITERS: Mapping[str, Write] = {
    **dict.fromkeys(mails.KINDS, mails.letter),
    **dict.fromkeys(order_mails.KINDS, order_letters.letter),
    **dict.fromkeys(account_mails.KINDS, account_letters.letter),
    **dict.fromkeys(document_mails.KINDS, document_letters.letter),
}
"""What writes the mails of each kind."""


async def _take(tx: Tx) -> QueuedMail | None:
    """Start an attempt at the mail that is due first; return None when none is due."""
    await password_resets.queue_mails(tx)
    return await queued_mail.take(tx)


async def _write(tx: Tx, mail: QueuedMail, post: Post) -> Letter | None:
    letter = await WRITERS[mail.kind](tx, mail, post)
    if letter is None:
        await queued_mail.sent(tx, mail)
    return letter


class Mailer:
    """The sender of mails; without a host in the settings it sends none."""

    def __init__(
        self,
        db: Database,
        settings: Mail,
        count: Count,
        *,
        service: str = "",
        site: str = "",
        mark: Callable[[str, str], str] = lambda token, owner_id: token,
    ) -> None:
        """`service` and `site` are the name and the address of this installation.

        `mark` adds the name of its cell to a token of an owner.
        """
        self._db = db
        self._settings = settings
        self._count = count
        self._service = service
        self._site = site.rstrip("/")
        self._mark = mark

    @property
    def enabled(self) -> bool:
        return bool(self._settings.host)

    async def any_due(self) -> bool:
        """Return whether there is a mail to send now."""
        return self.enabled and (
            await self._db.read(queued_mail.any_due)
            or await self._db.read(notices.any_due)
            or await self._db.read(password_resets.any_due)
        )

    async def run_once(self) -> None:
        """Send the mails that are due."""
        for _ in range(MOST):
            letter = await self._next()
            if letter is None:
                return
            await self._attempt(letter)

    async def _next(self) -> Letter | None:
        letter = await self._db.write(notice_mails.next_letter, self._service, self._site)
        while letter is None and (mail := await self._db.write(_take)) is not None:
            letter = await self._written(mail)
        return letter

    async def _written(self, mail: QueuedMail) -> Letter | None:
        """Write a mail; return None when nobody should get it any more, or when that fails.

        The attempt is counted already, so that such a mail holds up no other.
        """
        post = Post(mail_tokens.make(self._db.ids), self._service, self._site, self._mark)
        try:
            return await self._db.write(_write, mail, post)
        except Exception as error:  # noqa: BLE001 - whatever one mail breaks, the others go on
            await self._failed(mail, error)
            return None

    async def _attempt(self, letter: Letter) -> None:
        mail = letter.mail
        try:
            async with asyncio.timeout(self._settings.timeout_seconds * STEPS):
                await self._send(letter)
        except Exception as error:  # noqa: BLE001 - whatever one mail breaks, the others go on
            await self._failed(mail, error)
            return
        await self._db.write(_queue(mail).sent, mail)
        self._count(mail.kind, "sent")
        logger().info("mail_sent", **_fields(mail))

    async def _failed(self, mail: Queued, error: Exception) -> None:
        reason = _reason(error)
        again = await self._db.write(_queue(mail).failed, mail, reason, final=_is_final(error))
        result: Result = "put_off" if again else "given_up"
        self._count(mail.kind, result)
        logger().warning(f"mail_{result}", error=reason, **_fields(mail))

    async def _send(self, letter: Letter) -> None:
        if "=?" in letter.to:
            raise UnsafeAddress
        settings = self._settings
        message = self._message(letter)
        if letter.attachment is not None:
            pdf = await asyncio.to_thread(letter.attachment.make)
            message.add_attachment(
                pdf, maintype="application", subtype="pdf", filename=letter.attachment.name
            )
        # Without a connection nothing was sent, so that a second try sends no mail twice.
        connecting = AsyncRetrying(
            stop=stop_after_attempt(CONNECTIONS),
            wait=wait_fixed(PAUSE_SECONDS),
            retry=retry_if_exception(_passes),
            reraise=True,
        )
        await connecting(
            aiosmtplib.send,
            message,
            # Not those that the library reads in the headers, where an address may be decoded.
            sender=settings.from_address,
            recipients=[letter.to],
            hostname=settings.host,
            port=settings.port,
            username=settings.username or None,
            password=settings.password or None,
            timeout=settings.timeout_seconds,
            use_tls=settings.security == "tls",
            start_tls=settings.security == "starttls",
            # Otherwise the library looks up this machine's name, which blocks.
            local_hostname=settings.from_address.rpartition("@")[2],
        )

    def _message(self, letter: Letter) -> EmailMessage:
        sender = self._settings.from_address
        message = EmailMessage(policy=SMTP)
        message["From"] = Address(letter.sender, addr_spec=sender)
        message["To"] = letter.to
        message["Subject"] = letter.subject
        message["Date"] = datetime.fromtimestamp(self._db.clock.wall() // SECOND, UTC)
        mail = letter.mail
        message["Message-ID"] = f"<{mail.id}.{mail.attempts}@{sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter.text)
        if letter.html:
            message.add_alternative(letter.html, subtype="html")
        return message


def _queue(mail: Queued) -> Any:
    """Return the queue of a mail."""
    return queued_mail if isinstance(mail, QueuedMail) else notice_mails


def _fields(mail: Queued) -> dict[str, Any]:
    """Return what the log tells of a mail."""
    return {"mail": mail.id, "kind": mail.kind, "attempt": mail.attempts}


def _passes(error: BaseException) -> bool:
    """Return whether a connection failed at once and without an answer, which may pass."""
    return type(error) is aiosmtplib.SMTPConnectError


def _is_final(error: BaseException) -> bool:
    """Return whether the server will never accept this mail."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        return all(_is_final(one) for one in error.recipients)
    if isinstance(error, aiosmtplib.SMTPNotSupported | UnsafeAddress):
        # Of the first, the address has letters that this server cannot take.
        return True
    return isinstance(error, FINAL) and 500 <= getattr(error, "code", 0) < 600


def _reason(error: BaseException) -> str:
    """Return the kind of a failure without the words of the server, which may name a person."""
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused) and error.recipients:
        error = error.recipients[0]
    code = getattr(error, "code", None)
    return type(error).__name__ if code is None else f"{type(error).__name__} {code}"

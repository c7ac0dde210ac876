"""Writes the mails to accounts: links with a token, and notices of what concerns their security.

The address of a link is that of the settings, never one that a request names.
"""

from typing import cast
from urllib.parse import urlencode

from gateway import texts
from gateway.domain import queued_mail
from gateway.domain.accounts import account_tokens, users
from gateway.domain.accounts.account_mails import Kind
from gateway.domain.queued_mail import Letter, Post, QueuedMail
from gateway.records.values import dates
from outbox.database.transaction import Row, Tx

LINKS: dict[Kind, tuple[account_tokens.Kind, str]] = {
    "password_reset": ("reset", "/console/reset-password"),
    "email_confirm": ("email", "/console/confirm-email"),
}
"""The token of a mail and the page that takes it."""
LONGEST_FACT = 100


async def letter(tx: Tx, mail: QueuedMail, post: Post) -> Letter | None:
    """Write a mail, with its token; return None when nobody should get it any more.

    Without the address of the console no mail has a link, and those that need one are dropped.
    """
    kind = cast(Kind, mail.kind)
    link = LINKS.get(kind)
    if link is not None:
        await users.lock(tx, mail.owner_id)
        if not await queued_mail.waits(tx, mail):
            # A new password has ended what it would lead to.
            return None
    user = await users.one(tx, mail.owner_id)
    if user is None or user["disabled_at"] is not None or (link is not None and not post.site):
        return None
    address = ""
    if link is not None:
        of, path = link
        await account_tokens.add(tx, mail.owner_id, of, post.token, mail.address)
        address = f"{post.site}{path}?{urlencode({'token': post.token})}"
    return _letter(mail, user, queued_mail.line(post.service), address, post.site)


def _letter(mail: QueuedMail, user: Row, service: str, link: str, site: str) -> Letter:
    language = user["language"]
    catalogs = [texts.of(code) for code in ([language] if language else texts.BOTH)]

    def of(key: str, between: str = " / ") -> str:
        return between.join(catalog(f"account_mail.{key}") for catalog in catalogs)

    facts = {
        "time": _moment(mail.created_at, user["timezone"]),
        "account": user["email"],
        **mail.facts,
    }
    lines = [
        f"{of(f'fact.{name}')}: {queued_mail.line(text)[:LONGEST_FACT]}"
        for name, text in facts.items()
    ]
    parts = [of(f"{mail.kind}.text", "\n\n"), link, "\n".join(lines)]
    if not link:
        # Of a link, the text says what to do when somebody else has asked for it.
        parts += [of("unexpected", "\n\n"), f"{site}/console/account" if site else ""]
    return Letter(
        mail,
        mail.address or user["email"],
        service,
        f"{of(f'{mail.kind}.subject')} - {service}",
        "\n\n".join(part for part in parts if part) + "\n",
    )


def _moment(micros: int, zone: str) -> str:
    """Return a time as the clock of a zone shows it, such as 2026-11-28 18:41."""
    return f"{dates.local(micros, zone):%Y-%m-%d %H:%M} ({zone})"

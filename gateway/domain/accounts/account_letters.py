"""Writes the mails to accounts: links with a token, and notices of what concerns their security.

The address of a link is that of the settings, never one that a request names.
"""

from urllib.parse import urlencode

from gateway import texts
from gateway.domain import queued_mail
from gateway.domain.accounts import account_mails, account_tokens, password_resets, users
from gateway.domain.accounts.account_mails import AccountMail, Kind
from gateway.domain.queued_mail import Letter
from gateway.records.values import dates
from outbox.database.transaction import Row, Tx

BOTH = ("pt-BR", "en")
"""The languages of a mail to an account that has chosen none."""
LINKS: dict[Kind, tuple[account_tokens.Kind, str]] = {
    "password_reset": ("reset", "/console/reset-password"),
    "email_confirm": ("email", "/console/confirm-email"),
}
"""The token of a mail and the page that takes it."""
LONGEST_FACT = 100
_ANY_DUE = """
select 1 as due where exists (select 1 from account_mails where due_at <= $1)
  or exists (select 1 from reset_requests where due_at <= $1)
"""


async def any_due(tx: Tx) -> bool:
    """Return whether a mail to an account, or a request for one, is due."""
    return await tx.one(_ANY_DUE, tx.now) is not None


async def next_letter(tx: Tx, token: str, service: str, site: str) -> Letter | None:
    """Start an attempt at the mail that is due first, with a new token; None when none is due.

    `site` is the address of the console; without it no mail has a link, and those that need one
    are dropped.
    """
    await password_resets.queue_mails(tx)
    while (mail := await account_mails.take(tx)) is not None:
        user = await users.one(tx, mail.owner_id)
        link = LINKS.get(mail.kind)
        if user is None or user["disabled_at"] is not None or (link is not None and not site):
            await account_mails.sent(tx, mail)
            continue
        address = ""
        if link is not None:
            kind, path = link
            await account_tokens.add(tx, mail.owner_id, kind, token, mail.address)
            address = f"{site}{path}?{urlencode({'token': token})}"
        return _letter(mail, user, queued_mail.line(service), address, site)
    return None


def _letter(mail: AccountMail, user: Row, service: str, link: str, site: str) -> Letter:
    language = user["language"]
    chosen = [texts.of(code) for code in ([language] if language else BOTH)]

    def of(key: str, between: str = " / ") -> str:
        return between.join(one(f"account_mail.{key}") for one in chosen)

    facts = {"time": dates.show(mail.created_at), "account": user["email"], **mail.facts}
    lines = [
        f"{of(f'fact.{name}')}: {queued_mail.line(text)[:LONGEST_FACT]}"
        for name, text in facts.items()
    ]
    parts = [of(f"{mail.kind}.text", "\n\n"), link, "\n".join(lines)]
    if not link:
        # Of a link, the text says what to do when somebody else has asked for it.
        parts += [of("unexpected", "\n\n"), f"{site}/console/account" if site else ""]
    return Letter(
        mail, mail.address or user["email"], service,
        f"{of(f'{mail.kind}.subject')} - {service}",
        "\n\n".join(part for part in parts if part) + "\n",
    )  # fmt: skip

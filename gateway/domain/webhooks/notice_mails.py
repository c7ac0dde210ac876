"""Writes the mails to the owners of webhooks that began to fail, were disabled or have recovered.

A mail is written when it is sent, with the data of that time. The notices wait in the engine's
table; an owner or a webhook that is gone by then gets none.
"""

from gateway import texts
from gateway.domain import queued_mail
from gateway.domain.accounts import users
from gateway.domain.queued_mail import Letter, Queued
from gateway.records.values import dates
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.queue.state import notices
from outbox.queue.state.notices import Kind
from outbox.queue.state.owner_reports import bare

LONGEST_URL = 200


def _written(kind: Kind, language: str | None, **facts: str) -> tuple[str, str]:
    """Return subject and body of a notice in the language of the account, or in both."""
    catalogs = [texts.of(code) for code in ([language] if language else texts.BOTH)]

    def of(key: str, between: str = " / ") -> str:
        return between.join(catalog(f"notice.{key}") for catalog in catalogs)

    body = "\n".join((
        of(f"{kind}.text", "\n\n"), "", facts["link"], f"URL: {facts['url']}",
        f"{_title(of('reason'))}: {facts['reason']}", f"{_title(of('time'))}: {facts['time']}", "",
    ))  # fmt: skip
    return of(f"{kind}.subject"), body


def _title(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


async def next_letter(tx: Tx, service: str, site: str) -> Letter | None:
    """Start an attempt at the notice that is due first; return None when none is due.

    `site` is the address of the console, empty when it is not known.
    """
    while (notice := await notices.take(tx)) is not None:
        user = await users.one(tx, notice.owner_id)
        webhook = await webhooks.one(tx, notice.webhook_id)
        if user is None or user["disabled_at"] is not None or webhook is None:
            await notices.sent(tx, notice.id)
            continue
        name = queued_mail.line(service)
        subject, body = _written(
            notice.kind,
            user["language"],
            url=queued_mail.line(bare(webhook.url))[:LONGEST_URL],
            reason=queued_mail.line(notice.reason),
            time=dates.show(notice.created_at),
            link=f"{site}/console/webhooks/{webhook.id}\n" if site else "",
        )
        return Letter(notice, user["email"], name, f"{subject} - {name}", body)
    return None


async def sent(tx: Tx, mail: Queued) -> None:
    """End a notice that was sent."""
    await notices.sent(tx, mail.id)


async def failed(tx: Tx, mail: Queued, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else queued_mail.wait_after(mail.attempts)
    await notices.failed(tx, mail.id, mail.attempts, error, wait)
    return wait is not None

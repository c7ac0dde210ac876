"""Queues mails to customers in the transaction that causes them, and writes their texts.

A mail is written when it is sent, with the data and a token of that time, so the row holds neither
an address nor a secret, and a deleted customer gets no mail. An attempt is counted before it
starts: a process that ends in the middle of it leaves the mail to the next attempt.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from gateway import texts
from gateway.domain import queued_mail
from gateway.domain.queued_mail import Letter, Queued, line
from gateway.domain.storefront.mail import mail_tokens
from gateway.domain.storefront.mail.bodies import Body, as_html, with_query
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, SECOND

Kind = Literal["reset", "verify", "secured"]
LEASE = 300
"""Seconds after which an attempt that did not end counts as failed."""
KEPT = 30 * DAY
"""How long a mail is stored that was given up, or that no server is set to take."""
MOST = 5
"""Most mails of one kind for one customer that wait or have a valid token."""

_ADD = """
insert into mails (id, customer_id, kind, created_at, attempts, due_at)
select $1, $2, $3, $4, 0, $4 where $5 > (
  select count(*) from mails where customer_id = $2 and kind = $3 and due_at is not null) + (
  select count(*) from customer_tokens where customer_id = $2 and kind = $3 and expires_at > $4)
"""
_TAKE = """
update mails set attempts = attempts + 1, due_at = $1 + $2 where id in (
  select id from mails where due_at <= $1 order by due_at limit 1
  /*postgres for update skip locked*/)
returning id, customer_id, kind, attempts
"""


class MailAttempt(NamedTuple):
    """An attempt at a mail; `attempts` counts this one."""

    id: str
    customer_id: str
    kind: Kind
    attempts: int


async def add(tx: Tx, customer_id: str, kind: Kind) -> None:
    """Queue a mail to a customer, unless MOST of its kind wait or were sent lately.

    The caller has locked the account, so that the mails of two at once count.
    """
    await tx.run(_ADD, tx.new_id(), customer_id, kind, tx.now, MOST)


async def any_due(tx: Tx) -> bool:
    """Return whether a mail is due."""
    return await tx.one("select 1 as due from mails where due_at <= $1 limit 1", tx.now) is not None


async def take(tx: Tx) -> MailAttempt | None:
    """Start an attempt at the mail that is due first; return None when none is due."""
    row = await tx.one(_TAKE, tx.now, LEASE * SECOND)
    if row is None:
        return None
    return MailAttempt(row["id"], row["customer_id"], row["kind"], row["attempts"])


async def sent(tx: Tx, mail: Queued) -> None:
    """Remove a mail that was sent."""
    await tx.run("delete from mails where id = $1", mail.id)


async def failed(tx: Tx, mail: Queued, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else queued_mail.wait_after(mail.attempts)
    if wait is not None:
        await tx.run(
            "update mails set due_at = $2, error = $3 where id = $1 and attempts = $4",
            mail.id, tx.now + wait, error, mail.attempts,
        )  # fmt: skip
        return True
    await tx.run(
        "update mails set due_at = null, failed_at = $2, error = $3 where id = $1",
        mail.id, tx.now, error,
    )  # fmt: skip
    return False


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` mails that are KEPT old, given up or never tried; return how many."""
    return await tx.run(
        "delete from mails where id in (select id from mails where created_at < $1"
        " order by created_at limit $2)",
        tx.now - KEPT, limit,
    )  # fmt: skip


_RECIPIENT = """
select c.id, c.email, s.name, s.hostname, s.password_reset_url, s.email_verification_url
from customers c join stores s on s.id = c.store_id where c.id = $1 and c.email is not null
"""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a mail, each in Portuguese and in English; the link stands between them."""

    before: tuple[str, str]
    after: tuple[str, str]
    link: str = ""


def _both(key: str) -> tuple[str, str]:
    portuguese, english = (texts.of(code).forms[f"mail.{key}"][0] for code in ("pt-BR", "en"))
    return portuguese, english


SUBJECTS: dict[Kind, str] = {
    "reset": " / ".join(_both("reset.subject")),
    "verify": " / ".join(_both("verify.subject")),
    "secured": " / ".join(_both("secured.subject")),
}
TEXTS: dict[Kind, Texts] = {
    "reset": Texts(_both("reset.before"), _both("reset.after"), " / ".join(_both("reset.link"))),
    "verify": Texts(
        _both("verify.before"), _both("verify.after"), " / ".join(_both("verify.link"))
    ),
    "secured": Texts(_both("secured.before"), _both("secured.after")),
}


async def next_letter(tx: Tx, token: str) -> Letter | None:
    """Start an attempt at the mail that is due first, with a new token; None when none is due."""
    while (mail := await take(tx)) is not None:
        row = await tx.one(_RECIPIENT, mail.customer_id)
        if row is None:
            await sent(tx, mail)
            continue
        link = ""
        if mail.kind == "reset":
            link = _link(row["password_reset_url"], row["hostname"], "reset-password", token)
            await mail_tokens.add(tx, mail.customer_id, "reset", token)
        elif mail.kind == "verify":
            link = _link(row["email_verification_url"], row["hostname"], "verify-email", token)
            await mail_tokens.add(tx, mail.customer_id, "verify", token)
        return _letter(mail, row, link)
    return None


def _letter(mail: MailAttempt, row: Row, link: str) -> Letter:
    said, store = TEXTS[mail.kind], line(row["name"])
    before = [text.format(store=store) for text in said.before]
    parts = ["\n".join(before), *[link] * bool(link), "\n".join(said.after)]
    body = Body(
        language="pt-BR", store=store, title=SUBJECTS[mail.kind], opening=before,
        link_label=said.link, link=link, closing=said.after,
    )  # fmt: skip
    return Letter(
        mail, row["email"], store, f"{SUBJECTS[mail.kind]} - {store}",
        "\n\n".join(parts) + "\n", as_html(body),
    )  # fmt: skip


def _link(page: str | None, hostname: str, path: str, token: str) -> str:
    """Return the address of the shop's page with the token.

    The hostname is the store's own, never one that a request names.
    """
    return with_query(page or f"https://{hostname}/{path}", token=token)

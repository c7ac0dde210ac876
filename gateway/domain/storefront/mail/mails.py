"""Queues mails to customers in the transaction that causes them, and writes their texts.

The row of a mail holds no address, and a deleted customer gets no mail.
"""

from dataclasses import dataclass
from typing import Literal, cast, get_args

from gateway import texts
from gateway.domain.queued_mail import Letter, Post, QueuedMail, line
from gateway.domain.storefront.mail import mail_tokens
from gateway.domain.storefront.mail.mail_bodies import Body, as_html, with_query
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY

Kind = Literal["reset", "verify", "secured", "linked"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 30 * DAY
"""How long a mail is stored that was given up, or that no server is set to take."""
MOST = 5
"""Most mails of one kind for one customer that wait or have a valid token."""

_ADD = """
insert into queued_mails
  (id, owner_id, kind, customer_id, created_at, attempts, due_at, expires_at)
select $1, owner_id, $3, $2, $4, 0, $4, $6 from customers where id = $2 and $5 > (
  select count(*) from queued_mails where customer_id = $2 and kind = $3 and due_at is not null) + (
  select count(*) from customer_tokens where customer_id = $2 and kind = $3 and expires_at > $4)
"""


async def add(tx: Tx, customer_id: str, kind: Kind) -> None:
    """Queue a mail to a customer, unless MOST of its kind wait or were sent lately.

    The caller has locked the account, so that the mails of two at once count.
    """
    await tx.run(_ADD, tx.new_id(), customer_id, kind, tx.now, MOST, tx.now + KEPT)


_RECIPIENT = """
select c.id, c.email, s.name, s.hostname, s.password_reset_url, s.email_verification_url
from customers c join stores s on s.id = c.store_id where c.id = $1 and c.email is not null
"""


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a mail, each in both languages; the link stands between them."""

    before: tuple[str, str]
    after: tuple[str, str]
    link: str = ""


def _both(key: str) -> tuple[str, str]:
    home, english = (texts.of(code).forms[f"mail.{key}"][0] for code in texts.BOTH)
    return home, english


SUBJECTS: dict[Kind, str] = {
    "reset": " / ".join(_both("reset.subject")),
    "verify": " / ".join(_both("verify.subject")),
    "secured": " / ".join(_both("secured.subject")),
    "linked": " / ".join(_both("linked.subject")),
}
TEXTS: dict[Kind, Texts] = {
    "reset": Texts(_both("reset.before"), _both("reset.after"), " / ".join(_both("reset.link"))),
    "verify": Texts(
        _both("verify.before"), _both("verify.after"), " / ".join(_both("verify.link"))
    ),
    "secured": Texts(_both("secured.before"), _both("secured.after")),
    "linked": Texts(_both("linked.before"), _both("linked.after")),
}


async def letter(tx: Tx, mail: QueuedMail, post: Post) -> Letter | None:
    """Write a mail, with its token; return None when nobody should get it any more."""
    row = await tx.one(_RECIPIENT, mail.customer_id)
    if row is None:
        return None
    link, customer_id = "", str(row["id"])
    if mail.kind == "reset":
        link = _link(row["password_reset_url"], row["hostname"], "reset-password", post.token)
        await mail_tokens.add(tx, customer_id, "reset", post.token)
    elif mail.kind == "verify":
        link = _link(row["email_verification_url"], row["hostname"], "verify-email", post.token)
        await mail_tokens.add(tx, customer_id, "verify", post.token)
    return _letter(mail, row, link)


def _letter(mail: QueuedMail, row: Row, link: str) -> Letter:
    kind, store = cast(Kind, mail.kind), line(row["name"])
    said = TEXTS[kind]
    before = [text.format(store=store) for text in said.before]
    parts = ["\n".join(before), *[link] * bool(link), "\n".join(said.after)]
    body = Body(
        language=texts.HOME, store=store, title=SUBJECTS[kind], opening=before,
        link_label=said.link, link=link, closing=said.after,
    )  # fmt: skip
    return Letter(
        mail, row["email"], store, f"{SUBJECTS[kind]} - {store}",
        "\n\n".join(parts) + "\n", as_html(body),
    )  # fmt: skip


def _link(page: str | None, hostname: str, path: str, token: str) -> str:
    """Return the address of the shop's page with the token.

    The hostname is the store's own, never one that a request names.
    """
    return with_query(page or f"https://{hostname}/{path}", token=token)

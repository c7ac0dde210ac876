"""Keeps all mails of the product in one queue until they are sent, and describes a written mail.

A mail is queued in the transaction that causes it and written when it is sent, with the data and a
token of that time, so that a row holds no secret. An attempt is counted before it starts: a process
that ends in the middle of it leaves the mail to the next attempt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from outbox.database.expiry import Expiry
from outbox.database.transaction import Row, Tx
from outbox.durations import MINUTE, SECOND

WAITS = (30, 120, 600, 3_600, 14_400, 43_200)
"""Seconds before the attempts after the first; after the last one the mail is given up."""
LEASE = 5 * MINUTE
"""Microseconds after which an attempt that did not end counts as failed."""
EXPIRY = Expiry("queued_mails", "id")
"""What deletes mails, sent or not."""
Facts = Mapping[str, str]
"""What a mail says beside the data of its time, by name."""
NO_FACTS: Facts = {}

# Documents come last: an owner queues hundreds at once, and somebody waits for a link to sign in.
_TAKE = """
update queued_mails set attempts = attempts + 1, due_at = $1 + $2 where id in (
  select id from queued_mails where due_at <= $1 order by document_id is not null, due_at limit 1
  /*postgres for update skip locked*/)
returning id, owner_id, kind, customer_id, order_id, document_id, address, facts, created_at,
  attempts
"""


class QueuedMail(NamedTuple):
    """An attempt at a mail; `attempts` counts this one."""

    id: str
    owner_id: str
    kind: str
    customer_id: str | None
    order_id: str | None
    document_id: str | None
    address: str | None
    facts: Facts
    created_at: int
    attempts: int


class Queued(Protocol):
    """The row of a queue; `attempts` counts the one under way."""

    @property
    def id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def attempts(self) -> int: ...


class Attachment(NamedTuple):
    """A PDF beside the text; `make` takes long, so it runs outside of the transaction."""

    name: str
    make: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Letter:
    """A written mail; with `html` it has its text in both forms."""

    mail: Queued
    to: str
    sender: str
    """The name of the sender, beside the address of the settings."""
    subject: str
    text: str
    html: str = ""
    attachment: Attachment | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """What an attempt at a mail is written with."""

    token: str
    """A new token for the link of the mail."""
    service: str = ""
    """The name of this installation."""
    site: str = ""
    """The address of the console, empty when it is not known."""
    mark: Callable[[str, str], str] = lambda token, owner_id: token
    """Returns a token with the name of the cell of its owner."""


async def any_due(tx: Tx) -> bool:
    """Return whether a mail is due."""
    row = await tx.one("select 1 as due from queued_mails where due_at <= $1 limit 1", tx.now)
    return row is not None


async def count_waiting(tx: Tx) -> int:
    """Return how many mails are not sent yet, due or not."""
    row = await tx.one("select count(*) as waiting from queued_mails where due_at is not null")
    assert row is not None
    return int(row["waiting"])


async def take(tx: Tx) -> QueuedMail | None:
    """Start an attempt at the mail that is due first; return None when none is due."""
    row = await tx.one(_TAKE, tx.now, LEASE)
    return None if row is None else _queued(row)


async def waits(tx: Tx, mail: QueuedMail) -> bool:
    """Return whether a mail is still to be sent."""
    sql = "select 1 as due from queued_mails where id = $1 and due_at is not null"
    return await tx.one(sql, mail.id) is not None


def _queued(row: Row) -> QueuedMail:
    values = {name: row[name] for name in QueuedMail._fields}
    return QueuedMail(**values | {"facts": msgspec.json.decode(row["facts"] or "{}")})


async def sent(tx: Tx, mail: QueuedMail) -> None:
    """End a mail that was sent, or that nobody should get any more; its row still counts.

    Those to customers of stores count by their tokens.
    """
    if mail.customer_id is not None:
        await tx.run("delete from queued_mails where id = $1", mail.id)
        return
    await tx.run(
        "update queued_mails set due_at = null, address = null, facts = null where id = $1", mail.id
    )


async def failed(tx: Tx, mail: QueuedMail, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else wait_after(mail.attempts)
    await tx.run(
        "update queued_mails set due_at = $2, error = $3 where id = $1 and attempts = $4",
        mail.id, None if wait is None else tx.now + wait, error, mail.attempts,
    )  # fmt: skip
    return wait is not None


def wait_after(attempts: int) -> int | None:
    """Return microseconds until the next attempt after this many; None after the last one."""
    return WAITS[attempts - 1] * SECOND if attempts <= len(WAITS) else None


def line(text: str) -> str:
    """Return text for a header: one line without control characters, which no part can decode to.

    The library reads `=?…?=` as an encoded word, whatever it holds: lines and headers too.
    """
    words = "".join(c if c.isprintable() else " " for c in text).replace("=?", "= ?")
    return " ".join(words.split())

"""Prepare a database for a benchmark: people with keys and webhooks, through our own units."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.accounts import api_keys, users
from gateway.server.startup import SOURCES
from outbox import database
from outbox import webhooks as endpoints
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing

EVENTS_A_UNIT = 500
PEOPLE_A_UNIT = 50


@dataclass(frozen=True)
class Stage:
    """The address of a database, and the settings for `carteiro`."""

    url: str
    folder: Path

    @property
    def key_file(self) -> Path:
        return self.folder / "carteiro.key"

    def environment(self, receiver_port: int = 0, **settings: str) -> dict[str, str]:
        """Default settings, without limits of rates and of destinations."""
        return {
            "CARTEIRO_SERVER__PORT": "0",
            "CARTEIRO_DATABASE__URL": self.url,
            "CARTEIRO_SECRETS__KEY_FILE": str(self.key_file),
            "CARTEIRO_LIMITS__READ_PER_SECOND": "0",
            "CARTEIRO_LIMITS__WRITE_PER_SECOND": "0",
            "CARTEIRO_EGRESS__ALLOW_HTTP": "true",
            "CARTEIRO_EGRESS__ALLOW": f"127.0.0.1/32:{receiver_port}" if receiver_port else "",
        } | settings

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        db = await database.open(self.url, clock=SystemClock(), ids=Ids())
        try:
            yield db
        finally:
            await db.close()

    def ring(self) -> KeyRing:
        return read_key_file(self.key_file, Ids())

    async def prepare(self) -> None:
        """Create the schema and the key file."""
        write_key_file(self.key_file, Ids(), SystemClock().wall())
        async with self.opened() as db:
            await migrate(db, SOURCES)

    async def people(self, webhooks: Sequence[Sequence[str]], first: int = 0) -> list[Person]:
        """Create one person per list of URLs, with a webhook to each; numbered from `first`."""
        ring = self.ring()
        async with self.opened() as db:
            hired: list[Person] = []
            for start in range(0, len(webhooks), PEOPLE_A_UNIT):
                some = webhooks[start : start + PEOPLE_A_UNIT]
                hired += await db.write(_hire, first + start, some, ring)
            return hired


@dataclass(frozen=True)
class Person:
    """An owner of records and webhooks."""

    id: str
    key: str
    secrets: tuple[str, ...]
    """Ids of the webhooks, in order."""


async def _hire(
    tx: Tx, first: int, webhooks: Sequence[Sequence[str]], ring: KeyRing
) -> list[Person]:
    ids = Ids()
    people = []
    for number, urls in enumerate(webhooks, start=first):
        user_id = await users.add(
            tx, email=f"p{number}@example.com", name="Person", password_hash="-"
        )
        text = api_keys.make(ids)
        await api_keys.add(
            tx, owner_id=user_id, name="load", text=text, scopes=["read", "write"], expires_at=None
        )
        secrets = []
        for url in urls:
            secret = new_secret(ids.token(32))
            draft = Draft(url=url, events=("contact.created",))
            await endpoints.create(tx, owner_id=user_id, draft=draft, secret=secret, ring=ring)
            secrets.append(secret)
        people.append(Person(user_id, text, tuple(secrets)))
    return people


async def commit_events(db: Database, owners: Sequence[str], count: int) -> None:
    """Write `count` events as creating contacts does, the owners taking turns."""
    for first in range(0, count, EVENTS_A_UNIT):
        await db.write(_some_events, owners, first, min(EVENTS_A_UNIT, count - first))


async def _some_events(tx: Tx, owners: Sequence[str], first: int, count: int) -> None:
    for number in range(first, first + count):
        record = tx.new_id()
        data = {
            "id": record,
            "name": f"Maria da Conceição {number}",
            "email": f"maria{number}@example.com",
            "phone": "+55 11 98888-7777",
            "createdAt": "2026-11-21T09:05:00.000Z",
        }
        enqueue(
            tx, owner_id=owners[number % len(owners)], name="contact.created",
            record_id=record, record_version=1, data=data,
        )  # fmt: skip

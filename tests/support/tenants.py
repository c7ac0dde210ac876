"""Create owners with an API key and webhooks each, before the product serves the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from gateway.domain.accounts import api_keys, users
from outbox import database
from outbox import webhooks as endpoints
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.databases import SOURCES

EVENT = "contact.created"


@dataclass
class Tenants:
    """The writers, and the destinations of their events."""

    key_file: Path
    keys: dict[str, str] = field(default_factory=dict)
    """API key by owner id."""
    webhooks: dict[str, list[str]] = field(default_factory=dict)
    """Webhook ids by owner id."""
    paths: dict[str, str] = field(default_factory=dict)
    """Webhook id by the path at its receiver."""


async def settle_in(
    url: str,
    folder: Path,
    ports: list[int],
    *,
    owners: int = 20,
    webhooks: int = 3,
    host: str = "127.0.0.1",
    **draft: Any,
) -> Tenants:
    """Migrate the database at `url`; create owners whose webhooks are spread over `ports`.

    `draft` are settings of every webhook.
    """
    clock, ids = SystemClock(), Ids()
    tenants = Tenants(folder / "carteiro.key")
    write_key_file(tenants.key_file, ids, clock.wall())
    ring = read_key_file(tenants.key_file, ids)
    db = await database.open(url, clock=clock, ids=ids)
    try:
        await migrate(db, SOURCES)
        for number in range(owners):
            ours = [ports[(number + n) % len(ports)] for n in range(webhooks)]
            places = [f"http://{host}:{port}/owner{number}/hook{n}" for n, port in enumerate(ours)]
            await db.write(move_in, tenants, ids, ring, number, places, draft)
    finally:
        await db.close()
    return tenants


async def move_in(
    tx: Tx,
    tenants: Tenants,
    ids: Ids,
    ring: KeyRing,
    number: int,
    places: list[str],
    draft: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Create owner `number` with a webhook to each of `places`, URLs of different paths."""
    email = f"owner{number}@example.com"
    owner_id = await users.add(tx, email=email, name=f"Owner {number}", password_hash="x")
    key = api_keys.make(ids)
    await api_keys.add(tx, owner_id, api_keys.KeyDraft("load", key, ["read", "write"], None))
    tenants.keys[owner_id] = key
    tenants.webhooks[owner_id] = []
    for place in places:
        webhook_id = await endpoints.create(
            tx,
            owner_id=owner_id,
            draft=Draft(**{"url": place, "events": (EVENT,), **draft}),
            secret=new_secret(ids.token(32)),
            ring=ring,
        )
        tenants.webhooks[owner_id].append(webhook_id)
        tenants.paths[urlsplit(place).path] = webhook_id

"""The `carteiro store` commands. They raise their failures."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from msgspec import json

from gateway.cli import tables
from gateway.cli.commands import Say, existing, user_of
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.query import MOST, Query
from gateway.records.record import Record, check
from gateway.records.values import dates
from gateway.server.config import Config
from outbox.database.transaction import Row
from outbox.errors import CannotStart

OPTIONS = {
    "hostname": "HOSTNAME",
    "name": "--name",
    "aliases": "--alias",
    "allowedOrigins": "--origin",
}
"""The argument of each field."""


async def store_add(config: Config, arguments: Namespace, say: Say) -> None:
    """Create a store and print its id."""
    sent = {
        "hostname": arguments.hostname,
        "name": arguments.name.strip(),
        "aliases": arguments.alias or [],
        "allowedOrigins": arguments.origin or [],
    }
    async with existing(config) as db:
        user = await user_of(db, arguments.owner)
        if user["disabled_at"] is not None:
            raise CannotStart(f"{user['email']} is disabled; enable the account first")
        try:
            store = await db.write(stores.create, _actor(user), check(STORES, sent, creating=True))
        except Refusal as refusal:
            raise CannotStart(_reason(refusal, sent)) from None
    say(store.id)


async def store_list(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the stores of an account, the newest first."""
    records: list[Record] = []
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        query = Query(limit=MOST)
        while True:
            page = await db.read(actions.page, _actor(user), STORES, query)
            records += page.records
            if page.onward is None:
                break
            query.after = page.onward
    tables.say_all(
        [_cells(record) for record in records], tables.STORE, as_json=arguments.json, say=say
    )


def _actor(user: Row) -> Actor:
    return Actor(user["id"], "system", zone=user["timezone"])


def _reason(refusal: Refusal, sent: Mapping[str, Any]) -> str:
    """Return the faults with the options that have them."""
    if not refusal.faults:
        return refusal.message
    return "; ".join(
        f"{OPTIONS[name]} {_value(sent[name], at)!r}: {fault.message}"
        for fault in refusal.faults
        for name, _, at in [fault.field.partition("[")]
    )


def _value(sent: Any, at: str) -> Any:
    """Return the value of a fault: the whole, or the item at a place like `3]`."""
    return sent[int(at.removesuffix("]"))] if at else sent


def _cells(store: Record) -> Mapping[str, Any]:
    return {
        "id": store.id, "hostname": store["hostname"], "name": store["name"],
        "aliases": json.decode(store["aliases"]), "origins": json.decode(store["allowed_origins"]),
        "state": "active" if store["active"] else "inactive",
        "createdAt": dates.show(store.row[store.resource.position["created_at"]]),
    }  # fmt: skip

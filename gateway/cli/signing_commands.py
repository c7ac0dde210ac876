"""The `carteiro signing-keys` commands. They raise their failures."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from gateway.cli import tables
from gateway.cli.commands import Say, existing
from gateway.records.values import dates
from gateway.server import startup
from gateway.server.config import Config
from outbox.errors import CannotStart
from outbox.sending import ed25519
from outbox.webhooks import signing_keys
from outbox.webhooks.signing_keys import SigningKey, TooManyKeys


async def listed(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the public keys, including those that have ended."""
    async with existing(config) as db:
        keys = await db.read(signing_keys.listed)
    tables.say_all(
        [_cells(key) for key in keys], tables.SIGNING_KEY, as_json=arguments.json, say=say
    )


async def rotate(config: Config, arguments: Namespace, say: Say) -> None:
    """Make a new key, while servers run. Raise CannotStart when too many sign already."""
    async with existing(config) as db:
        ring = await startup.open_keys(config, db, db.ids)
        try:
            key = await db.write(
                signing_keys.rotate,
                ring,
                db.ids.token(ed25519.SEED_BYTES),
                at_once=arguments.at_once,
            )
        except TooManyKeys as refused:
            raise CannotStart(str(refused)) from None
    say(f"The key {key.id} signs from now on.")
    say(
        "The keys before it have ended; receivers that still have only these refuse requests until "
        "they fetch the keys again."
        if arguments.at_once
        else "The previous key also signs for 24 hours; receivers need to do nothing."
    )


def _cells(key: SigningKey) -> Mapping[str, Any]:
    state = "ended" if not key.signs else "current" if key.ends_at is None else "replaced"
    cells: dict[str, Any] = {
        "id": key.id,
        "publicKey": ed25519.public_text(key.public),
        "state": state,
        "createdAt": dates.show(key.created_at),
    }
    if key.ends_at is not None:
        cells["endsAt"] = dates.show(key.ends_at)
    return cells

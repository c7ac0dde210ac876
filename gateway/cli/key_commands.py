"""The `carteiro key` commands. They raise their failures."""

import re
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from gateway.cli import tables
from gateway.cli.commands import Say, existing, user_of
from gateway.domain.accounts import api_keys
from gateway.domain.cells.credential_suffix import marked
from gateway.records.values import dates
from gateway.server.config import Config
from outbox.database.transaction import Row
from outbox.durations import DAY
from outbox.errors import CannotStart

SHOWN = 5
"""The number of keys that the message about an ambiguous abbreviation lists."""
REFERENCE = re.compile(r"crt_[0-9A-Za-z]{1,8}|[0-9A-Fa-f]{24}", re.ASCII)


async def key_add(config: Config, arguments: Namespace, say: Say) -> None:
    """Create an API key and print it, and nothing else."""
    if not arguments.name.strip() or len(arguments.name) > 100:
        raise CannotStart("--name must be 1 to 100 characters")
    days = arguments.expires_days
    if days is not None and not 1 <= days <= 3_650:
        raise CannotStart("--expires-days must be 1 to 3650")
    if unknown := [one for one in arguments.resource or () if one not in api_keys.RESOURCES]:
        known = ", ".join(api_keys.RESOURCES)
        raise CannotStart(f"unknown --resource {unknown[0]}; there are {known}")
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        if user["disabled_at"] is not None:
            raise CannotStart(f"{user['email']} is disabled; enable the account first")
        text = marked(api_keys.make(db.ids), config.cell.name, user["id"])
        key = api_keys.KeyDraft(
            name=arguments.name.strip(),
            text=text,
            scopes=arguments.scope or ["read", "write"],
            expires_at=db.clock.wall() + days * DAY if days else None,
            resources=arguments.resource,
        )
        await db.write(api_keys.add, user["id"], key, most=config.limits.keys_per_owner)
    say(text)


async def key_list(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the keys of an account, including expired and revoked ones that are still stored."""
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        rows = await db.read(api_keys.all_of, user["id"])
        now = db.clock.wall()
    tables.say_all([_cells(row, now) for row in rows], tables.KEY, as_json=arguments.json, say=say)


async def key_revoke(config: Config, arguments: Namespace, say: Say) -> None:
    """Revoke the key with this beginning, this id or this full text."""
    text = arguments.key.strip()
    if not REFERENCE.fullmatch(text) and not api_keys.well_formed(text):
        raise CannotStart(
            "KEY must be the beginning of a key as `carteiro key list` shows it, such as "
            "crt_4kYb91Qx, its id, or the full key"
        )
    async with existing(config) as db:
        key = _only_match(text, await db.read(api_keys.matching, text, SHOWN + 1))
        ended = await db.write(api_keys.revoke, key["owner_id"], key["id"])
    say(f"{_named(key)} {'is revoked' if ended else 'was already revoked'}.")


def _only_match(text: str, keys: list[Row]) -> Row:
    """Return the one matching key; active keys take precedence over revoked ones.

    Raise CannotStart when no key or several keys match.
    """
    if not keys:
        # The text is cut because it may be a full secret key.
        raise CannotStart(
            f"there is no key {text[: api_keys.VISIBLE]}; `carteiro key list EMAIL` lists keys"
        )
    live = [key for key in keys if key["revoked_at"] is None]
    several = live or keys
    if len(several) > 1:
        names = ", ".join(_named(key) for key in several[:SHOWN])
        more = ", …" if len(several) > SHOWN else ""
        raise CannotStart(f"several keys begin with {text}; enter more characters: {names}{more}")
    return several[0]


def _named(key: Row) -> str:
    return f"{key['visible']} ({tables.inert(key['name'])}, {key['email']})"


def _cells(key: Row, now: int) -> Mapping[str, Any]:
    state = "active"
    if key["revoked_at"] is not None:
        state = "revoked"
    elif key["expires_at"] is not None and key["expires_at"] <= now:
        state = "expired"
    cells: dict[str, Any] = {
        "id": key["id"], "visible": key["visible"], "name": key["name"],
        "scopes": sorted(api_keys.scopes_of(key)), "state": state,
        "createdAt": dates.show(key["created_at"]),
    }  # fmt: skip
    only = api_keys.resources_of(key)
    if only is not None:
        cells["resources"] = sorted(only)
    for name, column in (("lastUsedAt", "last_used_at"), ("expiresAt", "expires_at")):
        if key[column] is not None:
            cells[name] = dates.show(key[column])
    return cells

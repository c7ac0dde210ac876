"""The keys beside a backup: which ones it needs, and whether they travel in it."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.server import startup
from gateway.server.config import Config
from outbox.database.database_urls import without_password
from outbox.database.transfer import Filling, Snapshot
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks import key_mark
from outbox.webhooks.key_files import put_key_file, read_key_file
from outbox.webhooks.secrets import KeyRing, parse_keys


def of(config: Config, ids: Ids) -> KeyRing | None:
    """Return the configured keys, None without a key file. Raise CannotStart."""
    if config.secrets.keys:
        return parse_keys(config.secrets.keys, ids, "secrets.keys")
    path = startup.key_file(config)
    return read_key_file(path, ids) if path.exists() else None


def text(config: Config) -> str:
    """Return the configured keys as the text of a key file."""
    if config.secrets.keys:
        return config.secrets.keys.replace(",", "\n").rstrip() + "\n"
    return startup.key_file(config).read_text(encoding="ascii")


async def needed(source: Snapshot) -> tuple[str, ...]:
    """Return the ids of the keys that encrypted what a snapshot has, of any release's schema."""
    tables = {table.name: table.names for table in source.tables}
    sealed = [name for name in key_mark.SEALED if name in tables.get("webhooks", ())]
    if not sealed:
        return ()
    return await key_mark.needed(
        source.query, marked=_marked(source), sealed=sealed, signing="signing_keys" in tables
    )


async def objection(source: Snapshot, config: Config, ring: KeyRing | None) -> str | None:
    """Return a line when the keys are not those of the configured database, `source`, else None."""
    if ring is None:
        return None
    fault = await key_mark.objection(source.query, ring, marked=_marked(source))
    if fault is None:
        return None
    url = without_password(config.database.url)
    return key_mark.refusal(startup.keys_named(config), url, fault)


async def must_belong(source: Snapshot, config: Config, ring: KeyRing | None) -> None:
    """Raise CannotStart when the keys are not those of the configured database, `source`."""
    fault = await objection(source, config, ring)
    if fault is not None:
        raise CannotStart(fault)


async def must_open(new: Filling, config: Config, key_text: str | None, ids: Ids) -> None:
    """Raise CannotStart when the keys, or the `key_text` of a backup, do not open what it has."""
    ring = (
        of(config, ids) if key_text is None else parse_keys(key_text, ids, "the keys of the backup")
    )
    if ring is None:
        return
    fault = await new.run(key_mark.objection_in, ring)
    if fault is not None:
        where = startup.keys_named(config) if key_text is None else "the key file in the backup"
        raise CannotStart(f"{where} does not fit the backup: {fault}; use the keys of the backup")


def _marked(source: Snapshot) -> bool:
    return any(
        applied.component == "outbox" and applied.number == key_mark.MIGRATION
        for applied in source.migrations
    )


def shown(config: Config) -> str:
    """Return where the keys are, for people."""
    return "in secrets.keys" if config.secrets.keys else str(startup.key_file(config))


def missing(config: Config, needed_ids: Sequence[str], key_text: str | None, ids: Ids) -> bool:
    """Return whether the key file is missing, so that it is to be put back.

    Raise CannotStart when there are keys, but not those that a backup needs: `needed_ids` by id.
    """
    if not needed_ids:
        return False
    ring = of(config, ids)
    if ring is None:
        return True
    if lacking := sorted(set(needed_ids).difference(ring.key_ids)):
        fix = (
            "move it away, since the backup has its keys"
            if key_text is not None and not config.secrets.keys
            else "put the keys of the backup there first"
        )
        where = startup.keys_named(config)
        raise CannotStart(f"{where} lacks the key {lacking[0]}, which the backup needs; {fix}")
    return False


def must_fit(key_text: str | None, needed_ids: Sequence[str], ids: Ids, backup: str) -> None:
    """Raise CannotStart when the keys in the `key_text` of a backup are not those that it needs."""
    if key_text is None:
        return
    source = f"the key file in {backup}"
    ring = parse_keys(key_text, ids, source) if key_text.isascii() else None
    if ring is None or not set(needed_ids) <= set(ring.key_ids):
        raise CannotStart(f"{source} lacks a key that the backup needs; use another backup")


def put_back(config: Config, is_missing: bool, key_text: str | None) -> None:
    """Write the keys of a backup to the missing key file. Raise CannotStart."""
    if not is_missing or key_text is None:
        return
    put_key_file(startup.key_file(config), key_text)

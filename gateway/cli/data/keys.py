"""The keys beside a backup: which ones it needs, and whether they travel in it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from gateway.server import startup
from gateway.server.config import Config
from outbox import private_files
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
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


def shown(config: Config) -> str:
    """Return where the keys are, for people."""
    return "in secrets.keys" if config.secrets.keys else str(startup.key_file(config))


def missing(config: Config, wanted: Sequence[str], given: str | None, ids: Ids) -> bool:
    """Return whether the key file is missing, so that it is to be put back.

    Raise CannotStart when there are keys, but not those that a backup needs: `wanted` by id. With
    other keys a server would end each delivery as undecipherable.
    """
    if not wanted:
        return False
    ring = of(config, ids)
    if ring is None:
        return True
    if lacking := sorted(set(wanted).difference(ring.key_ids)):
        where = "secrets.keys" if config.secrets.keys else f"the key file {shown(config)}"
        fix = (
            "move it away, since the backup has its keys"
            if given is not None and not config.secrets.keys
            else "put the keys of the backup there first"
        )
        raise CannotStart(f"{where} lacks the key {lacking[0]}, which the backup needs; {fix}")
    return False


def put_back(config: Config, is_missing: bool, given: str | None) -> None:
    """Write the keys of a backup to the missing key file. Raise CannotStart."""
    if not is_missing or given is None:
        return
    path = startup.key_file(config)
    try:
        path.parent.mkdir(private_files.FOLDER, parents=True, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.FILE)
        with os.fdopen(number, "wb") as handle:
            handle.write(given.encode("ascii"))
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        raise CannotStart(f"cannot write the key file {path}: {error.strerror}") from None

"""The `carteiro secrets` commands. They raise their failures."""

from argparse import Namespace
from pathlib import Path

from gateway.cli.commands import Say, existing
from gateway.server import startup
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks import resealing
from outbox.webhooks.key_files import activate_keys, add_key, read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing

AT_ONCE = 100


async def init(config: Config, given: Namespace, say: Say) -> None:
    """Create the key file at its configured path."""
    path = startup.key_file(config)
    write_key_file(path, Ids(), SystemClock().wall())
    say(f"Created {path}; store a copy in a safe place, apart from the database backups.")


async def rotate(config: Config, given: Namespace, say: Say) -> None:
    """Replace the key that encrypts secrets, while servers run.

    A rotation that was interrupted is finished first, without another key.
    """
    path = _file(config)
    async with existing(config) as db:
        ring = read_key_file(path, db.ids)
        if given.stage:
            _stage(db, ring, path, say)
            return
        if ring.staged_ids:
            activate_keys(path)
        elif await db.read(resealing.unfinished, ring):
            say("An earlier rotation was interrupted; it is finished now, without a new key.")
        else:
            _must_be_alone(db, given.only_node)
            add_key(path, db.ids, db.clock.wall(), staged=False)
        ring.refresh()
        say(f"The key {ring.newest} in {path} encrypts from now on.")
        done, broken = await _reseal(db, ring)
    say(f"Encrypted again: {done} {'value' if done == 1 else 'values'}.")
    if broken:
        raise CannotStart(
            f"no key of {path} decrypts {broken} of the values; put the key that encrypted them "
            "back into the file, or create new secrets for those webhooks in the console"
        )
    say(
        "Keep the older keys in the file: backups and customers' sessions from before need them. "
        "Store a copy of the file in a safe place, apart from the database backups."
    )


def _file(config: Config) -> Path:
    if config.secrets.keys:
        raise CannotStart(
            "the keys are in secrets.keys, which this command cannot change; append a key to it, "
            "separated by a comma, and restart the servers"
        )
    return startup.key_file(config)


def _stage(db: Database, ring: KeyRing, path: Path, say: Say) -> None:
    if ring.staged_ids:
        say(f"The key {ring.staged_ids[0]} is staged already.")
    else:
        add_key(path, db.ids, db.clock.wall(), staged=True)
        say(f"Added a staged key to {path}; it decrypts and does not encrypt yet.")
    say("Copy the file to every node, then run: carteiro secrets rotate")


def _must_be_alone(db: Database, only_node: bool) -> None:
    """A node without the new key would end deliveries as undecipherable."""
    if db.engine == "postgres" and not only_node:
        raise CannotStart(
            "other nodes may use this database and need the new key first; run `carteiro secrets "
            "rotate --stage`, copy the key file to every node, then run this command again; with "
            "a single node add --only-node"
        )


async def _reseal(db: Database, ring: KeyRing) -> tuple[int, int]:
    done = broken = 0
    after: str | None = ""
    while after is not None:
        page = await db.write(resealing.reseal, ring, after, AT_ONCE)
        after, done, broken = page.last, done + page.done, broken + page.broken
    return done, broken

"""The `carteiro secrets` commands. They raise their failures."""

from argparse import Namespace
from pathlib import Path

from gateway.cli.commands import Say, existing
from gateway.cli.data import backup_keys
from gateway.cli.data.target_filling import own_tables
from gateway.domain import sealed_columns
from gateway.server import startup
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.database_urls import without_password
from outbox.database.transaction import Database, Tx
from outbox.database.transfer import Place
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids
from outbox.sending.ed25519 import SEED_BYTES
from outbox.webhooks import key_mark, resealing, signing_keys
from outbox.webhooks.key_files import (
    activate_keys,
    add_key,
    must_be_new,
    read_key_file,
    write_key_file,
)
from outbox.webhooks.secrets import KeyRing

AT_ONCE = 100


async def init(config: Config, arguments: Namespace, say: Say) -> None:
    """Create the key file at its configured path, for a database without secrets."""
    path = startup.key_file(config)
    if arguments.give_up_secrets:
        await _give_up(config, path, say)
        return
    must_be_new(path)
    unknown = await _must_have_no_secrets(config, path)
    write_key_file(path, Ids(), SystemClock().wall())
    say(f"Created {path}; store a copy in a safe place, apart from the database backups.")
    if unknown:
        say(
            f"Note: {without_password(config.database.url)} could not be read ({unknown}). If it "
            f"has secrets, delete {path} and put its own key file there: no server starts with "
            "another one."
        )


async def rotate(config: Config, arguments: Namespace, say: Say) -> None:
    """Replace the key that encrypts secrets, while servers run.

    A rotation that was interrupted is finished first, without another key.
    """
    path = _file(config)
    async with existing(config) as db:
        ring = read_key_file(path, db.ids)
        url = without_password(config.database.url)
        await key_mark.must_belong(db, ring, startup.keys_named(config), url)
        if arguments.stage:
            _stage(db, ring, path, say)
            return
        if ring.staged_ids:
            activate_keys(path)
        elif await db.read(resealing.unfinished, ring):
            say("An earlier rotation was interrupted; it is finished now, without a new key.")
        else:
            _must_be_alone(db, arguments.only_node)
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


async def _must_have_no_secrets(config: Config, path: Path) -> str:
    """Raise CannotStart when the database needs keys; return why it could not be read, or ""."""
    file = startup.sqlite_file(config)
    if file is not None and not file.exists():
        return ""
    settings = config.database
    place = Place(
        settings.url, SystemClock(), Ids(), settings.direct_url, settings.synchronous_commit
    )
    try:
        async with transfer_ends.snapshot(place, own_tables(place.engine)) as source:
            ids = await backup_keys.needed(source)
    except OutboxError as error:
        return str(error)
    if ids:
        raise CannotStart(
            f"the database {without_password(settings.url)} has secrets, encrypted with the key "
            f"{ids[-1]}; put its key file at {path}, from the backup of the keys or from another "
            "node"
        )
    return ""


async def _give_up(config: Config, path: Path, say: Say) -> None:
    """Let new keys belong to the database, whose own ones are lost."""
    async with existing(config) as db:
        ring = backup_keys.of(config, db.ids)
        if ring is None:
            write_key_file(path, db.ids, db.clock.wall())
            ring = read_key_file(path, db.ids)
        where = startup.keys_named(config)
        if await db.read(key_mark.objection_in, ring) is None:
            raise CannotStart(f"{where} belongs to the database; there is nothing to give up")
        lost, accounts, stores = await db.write(_replace, ring, db.ids.token(SEED_BYTES))
    say(f"From now on {where} belongs to {without_password(config.database.url)}.")
    say(
        "Webhooks whose secrets were encrypted with the lost keys send nothing until their owners "
        "replace the secrets in the console; their deliveries wait."
    )
    if lost:
        say(
            "The signing keys were lost too; a new one signs, and receivers fetch it by themselves."
        )
    if accounts:
        one = accounts == 1
        say(
            f"{accounts} {'account' if one else 'accounts'} with two-factor authentication "
            f"{'needs' if one else 'need'} a recovery code to sign in, or `carteiro user "
            f"end-two-factor EMAIL`, and {'turns' if one else 'turn'} it on again."
        )
    if stores:
        say(
            f"{stores} {'store needs' if stores == 1 else 'stores need'} a new payment secret, "
            "created in the console."
        )


async def _replace(tx: Tx, ring: KeyRing, seed: bytes) -> tuple[int, int, int]:
    """Give up all at once; return how many signing keys, accounts and stores lose a secret.

    In one transaction, because nobody is told later: a repeat finds nothing to give up.
    """
    await key_mark.replace(tx, ring)
    return (
        await signing_keys.give_up(tx, ring, seed),
        await sealed_columns.unreadable(tx, "two_factors", ring),
        await sealed_columns.unreadable(tx, "payment_secrets", ring),
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
    """A node without the new key could not decrypt what is encrypted with it."""
    if db.engine == "postgres" and not only_node:
        raise CannotStart(
            "other nodes may use this database and need the new key first; run `carteiro secrets "
            "rotate --stage`, copy the key file to every node, then run this command again; with "
            "a single node add --only-node"
        )


async def _reseal(db: Database, ring: KeyRing) -> tuple[int, int]:
    done = broken = 0
    after: str | None
    for table in sealed_columns.LASTING:
        after = ""
        while after is not None:
            after, again, unreadable = await db.write(
                sealed_columns.reseal, table, ring, after, AT_ONCE
            )
            done, broken = done + again, broken + unreadable
    # Last, because it ends with the mark by which an interrupted rotation is known.
    after = ""
    while after is not None:
        page = await db.write(resealing.reseal, ring, after, AT_ONCE)
        after, done, broken = page.last, done + page.done, broken + page.broken
    return done, broken

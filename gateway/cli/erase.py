"""`carteiro erase`: shows what is stored about a person, asks, and erases it."""

import sys
from argparse import Namespace

import msgspec

from gateway.cli import tables
from gateway.cli.commands import Say, existing, user_of
from gateway.domain.privacy import certificates, export, person_overview, progress
from gateway.domain.privacy.progress import Ahead
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.server.config import Config
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import is_id

YES = "yes"
NOTHING = "nothing is erased"


async def erase(config: Config, arguments: Namespace, say: Say) -> None:
    """Erase the person of a contact or a customer. Raise CannotStart, Refusal."""
    if not is_id(arguments.person):
        raise CannotStart(f"{arguments.person} is not the id of a contact or a customer")
    person_id = arguments.person.lower()
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        actor = Actor(user["id"], "system")
        record = await db.read(_named, actor, person_id, arguments.email)
        for line in await _told(db, actor, record, person_id, arguments.email):
            say(line)
        if not arguments.yes:
            _must_agree()
        resource = None if record is None else record.resource
        erasure = await db.write(certificates.command, actor, resource, person_id)
        # The server does the rest; without one the records go all the same.
        ahead = Ahead()
        while erasure.stage in ("lines", "records"):
            ahead = await progress.advance(db, erasure.id, ahead)
            erasure = await db.read(certificates.own, actor, erasure.id)
    if erasure.completed_at is None:
        say("The server erases its events and what receivers responded to them, within seconds.")
    text = msgspec.json.format(msgspec.json.encode(certificates.shown(erasure)), indent=2)
    say(text.decode())


async def _named(tx: Tx, actor: Actor, person_id: str, email: str) -> Record | None:
    """Return the contact or the customer; None for one that was deleted before.

    Raises CannotStart for any other id.
    """
    try:
        return await person_overview.named(tx, actor, person_id)
    except Refusal as refusal:
        if refusal.code == "not_found" and await certificates.was_there(tx, actor, person_id):
            return None
        if refusal.code not in ("not_found", "forbidden"):
            raise
    raise CannotStart(
        f"{person_id} is no contact and no customer of {email}, and none was deleted whose events "
        f"are stored; {NOTHING}"
    )


async def _told(
    db: Database, actor: Actor, record: Record | None, person_id: str, email: str
) -> list[str]:
    if record is None:
        return [f"{person_id} was deleted before; what events and the log have of it is erased."]
    named = ", ".join(filter(None, [record["name"], record["email"], record["phone"]]))
    counts = await db.read(person_overview.counts, actor, await export.found(db, actor, record))
    lines = [
        f"  {kind}: {_number(count)}" + (", kept without the person" if kept else "")
        for kind, count in counts.items()
        for kept in [kind in certificates.WHY]
    ]
    return [
        tables.inert(f"{record.resource.noun} {record.id} of {email}: {named}"),
        "Everything about this person is erased, and cannot come back:",
        *lines,
    ]


def _number(count: int) -> str:
    return f"{count:,} or more" if count >= person_overview.MOST else f"{count:,}"


def _must_agree() -> None:
    """Ask for the word. Raise CannotStart for another one, and where nobody can be asked."""
    if not sys.stdin.isatty():
        raise CannotStart(f"{NOTHING}: there is no terminal to ask at; --yes erases without asking")
    sys.stdout.write(f"Write {YES} to erase: ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() != YES:
        raise CannotStart(NOTHING)

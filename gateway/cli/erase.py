"""`carteiro erase`: erases the person of a contact, and prints the certificate."""

from argparse import Namespace

import msgspec

from gateway.cli.commands import Say, existing, user_of
from gateway.domain.privacy import certificates, progress
from gateway.domain.privacy.progress import Ahead
from gateway.records.access import Actor
from gateway.server.config import Config
from outbox.errors import CannotStart
from outbox.ids import is_id


async def erase(config: Config, arguments: Namespace, say: Say) -> None:
    """Erase a contact of an account. Raise CannotStart, Refusal."""
    if not is_id(arguments.contact):
        raise CannotStart(f"{arguments.contact} is not the id of a contact")
    contact_id = arguments.contact.lower()
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        actor = Actor(user["id"], "system")
        erasure, there = await db.write(certificates.command, actor, contact_id)
        # The server does the rest; without one the records go all the same.
        ahead = Ahead()
        while erasure.stage in ("lines", "records"):
            ahead = await progress.advance(db, erasure.id, ahead)
            erasure = await db.read(certificates.own, actor, erasure.id)
    done = "is deleted" if there else "was deleted before, or never was one of this account"
    say(f"The contact {contact_id} {done}.")
    if erasure.completed_at is None:
        say("The server erases its events and what receivers responded to them, within seconds.")
    text = msgspec.json.format(msgspec.json.encode(certificates.shown(erasure)), indent=2)
    say(text.decode())

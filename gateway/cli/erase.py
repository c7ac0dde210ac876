"""`carteiro erase`: erases a contact with its traces in events and deliveries."""

from argparse import Namespace

from gateway.cli.commands import Say, existing, user_of
from gateway.domain.contacts import contacts
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
        there = await db.write(contacts.erase, Actor(user["id"], "system"), contact_id)
    done = "is deleted" if there else "was deleted before, or never was one of this account"
    say(f"The contact {contact_id} {done}.")
    say("The server erases its events and what receivers responded to them, within seconds.")

"""Keep a copy of all contacts in a table of your own; run it as often as you like.

Each run asks only for what has changed since the last one: `updatedSince` gives new and changed
contacts, and the events feed tells which were deleted. The client is that of client.py.
"""

import os
import sqlite3
from datetime import UTC, datetime, timedelta

from carteiro_client import AuthenticatedClient
from carteiro_client.api.contacts import list_contacts
from carteiro_client.api.events import list_events
from carteiro_client.models import Contact, ContactPage, Events
from carteiro_client.types import UNSET

client = AuthenticatedClient(base_url=os.environ["CARTEIRO_URL"], token=os.environ["CARTEIRO_KEY"])
copy = sqlite3.connect(os.environ.get("COPY", "copy.db"))
copy.execute("create table if not exists contacts (id text primary key, name text, email text)")
copy.execute("create table if not exists state (name text primary key, value text)")


def remembered(name: str) -> str | None:
    row = copy.execute("select value from state where name = ?", (name,)).fetchone()
    return None if row is None else row[0]


def remember(name: str, value: str) -> None:
    copy.execute("insert or replace into state values (?, ?)", (name, value))


def changed_at(contact: Contact) -> datetime:
    return contact.updated_at or contact.created_at


def store_changes() -> int:
    """Store what is new or changed, in the order of the changes."""
    since = datetime.fromisoformat(remembered("since") or "1970-01-01T00:00:00+00:00")
    # A change that waits for others has the time at which it began, which may be read by then.
    since -= timedelta(minutes=1)
    cursor, count = UNSET, 0
    while True:
        page = list_contacts.sync(client=client, updated_since=since, cursor=cursor, limit=100)
        assert isinstance(page, ContactPage), page
        for one in page.data:
            row = (one.id, one.name, one.email or None)
            copy.execute("insert or replace into contacts values (?, ?, ?)", row)
        count += len(page.data)
        if page.data:
            remember("since", changed_at(page.data[-1]).astimezone(UTC).isoformat())
        copy.commit()
        if not page.next_cursor:
            return count
        cursor = page.next_cursor


def remove_deleted() -> int:
    """Remove what was deleted. The place in the feed is stored with the removal, in one commit."""
    count = 0
    while True:
        page = list_events.sync(
            client=client, types="contact.deleted", after=remembered("place") or UNSET, limit=100
        )
        assert isinstance(page, Events), page
        for event in page.data:
            count += copy.execute("delete from contacts where id = ?", (event.record_id,)).rowcount
        if page.next_cursor:
            remember("place", page.next_cursor)
        copy.commit()
        if not page.has_more:
            return count


stored = store_changes()
# Afterwards, so that a contact that is deleted meanwhile does not stay.
print(f"stored {stored}, removed {remove_deleted()}")

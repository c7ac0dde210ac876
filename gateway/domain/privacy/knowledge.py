"""Adds to what identifies a person, up to a bound."""

from collections.abc import Iterable

from msgspec import structs

from gateway.domain.contacts.person_erasures import Person
from gateway.records.values.emails import spellings

MOST_KNOWN = 50
"""Names, phones or emails by which a person is recognised in texts."""
WORDS = ("aliases", "names", "phones")


def more(person: Person, **found: Iterable[str | None]) -> Person:
    """Return the person with more of what identifies it, by field; the same one if all is known."""
    if "aliases" in found:
        found["aliases"] = [
            spelling for email in found["aliases"] if email for spelling in spellings(email)
        ]
    fields = {
        name: tuple(dict.fromkeys((*getattr(person, name), *filter(None, values))))
        for name, values in found.items()
    }
    # The first ones are those of the named record.
    fields |= {name: fields[name][:MOST_KNOWN] for name in WORDS if name in fields}
    if all(getattr(person, name) == values for name, values in fields.items()):
        return person
    return structs.replace(person, **fields)

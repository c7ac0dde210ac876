"""What is typed into an input of a record: a name or an id."""

import re
from typing import NamedTuple

from gateway.console.layout.forms import Form
from outbox.ids import is_id

MARKED = re.compile(r" · ([0-9a-f]{24})$", re.ASCII)
"""The end of a suggestion whose name others have too."""


class Picked(NamedTuple):
    """What was typed into an input of a record: a name or an id, and the id that it stands for."""

    text: str = ""
    id: str = ""


def picked(form: Form, name: str) -> Picked:
    """Return what was typed for a record: the match that was chosen, else the text.

    The id stands for the text only while the text is the one that was shown with it.
    """
    text, chosen = form.text(name).strip(), form.text(f"{name}.pick").lower()
    known, shown = form.text(f"{name}.is").lower(), form.text(f"{name}.as")
    if is_id(chosen):
        return Picked(text or chosen, chosen)
    marked = MARKED.search(text)
    if marked is not None:
        return Picked(text, marked[1])
    if is_id(text):
        return Picked(text, text.lower())
    return Picked(text, known if text and text == shown and is_id(known) else "")


def several_picked(form: Form, name: str) -> list[Picked]:
    """Return what was typed into a list of such inputs, without empty ones."""
    found, place = [], 0
    while form.all(f"{name}[{place}]"):
        one = picked(form, f"{name}[{place}]")
        if one.text:
            found.append(one)
        place += 1
    return found

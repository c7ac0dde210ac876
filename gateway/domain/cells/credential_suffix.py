"""The end of a credential that names the cell and the owner it was made for.

`<credential>.<cell>.<owner id>`: a proxy routes by it without a look-up. The cell is that of the
owner at the time; he may have moved since.
"""

import re
from typing import NamedTuple

NAME = r"[a-z][a-z0-9-]{0,15}"
"""The form of a cell's name."""
MARK = rf"\.{NAME}\.[0-9a-f]{{24}}"
NOBODY = "0" * 24
"""In the mark of a credential that belongs to nobody yet."""
_MARKED = re.compile(rf"[^.]+\.({NAME})\.([0-9a-f]{{24}})", re.ASCII)


class Mark(NamedTuple):
    """The cell and the owner for whom a credential was made."""

    cell: str
    owner_id: str


def marked(credential: str, cell: str, owner_id: str) -> str:
    """Return a credential with its mark; without a cell, the credential itself."""
    return f"{credential}.{cell}.{owner_id}" if cell else credential


def bare(text: str) -> str:
    """Return a credential without its mark."""
    return text.partition(".")[0]


def mark_of(text: str) -> Mark | None:
    """Return the mark of a credential, None when it has none."""
    match = _MARKED.fullmatch(text) if len(text) <= 200 else None
    return None if match is None else Mark(match[1], match[2])

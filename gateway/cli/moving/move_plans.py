"""Read a plan of moves: a line for each, with the account, its cell and the cell it goes to."""

from collections.abc import Sequence
from pathlib import Path

from outbox.errors import CannotStart

WORDS = 3


def read(file: Path) -> Sequence[tuple[str, str, str]]:
    """Return e-mail address, source and target of each move. Raise CannotStart."""
    steps = []
    for number, line in enumerate(_text(file).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != WORDS:
            raise CannotStart(f"{file}, line {number}: must be EMAIL FROM TO")
        steps.append((words[0], words[1], words[2]))
    return steps


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise CannotStart(f"{file} cannot be read: {why}") from None

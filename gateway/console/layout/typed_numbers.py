"""Converts numbers between values and what is typed, in the form of the reader's language."""

from decimal import Decimal
from typing import Any

from gateway.records.values import written_numbers
from gateway.records.values.formats import Wrong
from gateway.texts import Texts


def number(text: str, texts: Texts) -> Any:
    """Return the number of a typed text; another text stays one, which the declaration refuses."""
    try:
        read = written_numbers.read(text, texts.numbers)
    except Wrong:
        return text
    return int(read) if read == int(read) else read


def written(value: int | float | Decimal, texts: Texts, places: int | None = None) -> str:
    """Return a number as it would be typed, with so many decimals; `number` reads it back equal."""
    return written_numbers.write(value, texts.numbers, places)


def plain(text: str, texts: Texts) -> str:
    """Return a typed number with a decimal point; another text stays as it is."""
    read = number(text, texts)
    return f"{read:f}" if isinstance(read, Decimal) else str(read)

"""Finds a person in text, and takes the person out of it.

A person is recognised by the emails, the phones and the names: in a text that an owner wrote about
this person by each word of a name, in other texts by the whole name.
"""

import re
from collections.abc import Iterable
from typing import Any

from gateway.domain.contacts.person_erasures import Person
from gateway.records.values.folding import fold

MARK = "***"
"""What stands for a trace; no trace is shorter, so that no text grows."""
SHORTEST = 3
"""Letters of a word, or of a whole name, that can identify somebody."""
FEWEST_DIGITS = 8
PARTICLES = frozenset({"das", "dos", "del", "von", "van", "der", "den", "los", "las", "the", "and"})
_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")
_BETWEEN = r"[\s().\-/]{0,3}"


class Traces:
    """The traces of a person."""

    def __init__(self, person: Person) -> None:
        self.names = [
            words for name in dict.fromkeys(person.names)
            if len("".join(words := [fold(word) for word in _WORD.findall(name)])) >= SHORTEST
        ]  # fmt: skip
        self.words = {
            word for words in self.names for word in words
            if len(word) >= SHORTEST and word not in PARTICLES and not word.isdigit()
        }  # fmt: skip
        emails = (*person.emails, *person.aliases)
        patterns = [re.escape(email.strip()) for email in dict.fromkeys(emails)]
        patterns += [_phone(digits) for digits in phones_of(person.phones)]
        self._exact = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None

    def redact(self, text: str, *, close: bool) -> str:
        """Return the text without the traces; `close`: the text is about this person."""
        if self._exact is not None:
            text = self._exact.sub(MARK, text)
        found = list(_WORD.finditer(text))
        folded = [fold(one.group()) for one in found]
        gone: set[int] = set()
        for words in self.names:
            for start in range(len(folded) - len(words) + 1):
                if folded[start : start + len(words)] == words:
                    gone.update(range(start, start + len(words)))
        if close:
            gone |= {place for place, word in enumerate(folded) if word in self.words}
        for place in sorted(gone, reverse=True):
            text = f"{text[: found[place].start()]}{MARK}{text[found[place].end() :]}"
        return text

    def redact_all(self, value: Any, *, close: bool) -> Any:
        """Return a JSON value whose texts are redacted."""
        match value:
            case str():
                return self.redact(value, close=close)
            case list():
                return [self.redact_all(item, close=close) for item in value]
            case dict():
                return {name: self.redact_all(item, close=close) for name, item in value.items()}
            case _:
                return value

    def within(self, text: str, *, close: bool) -> bool:
        """Return whether the text holds a trace."""
        return self.redact(text, close=close) != text


def phones_of(phones: Iterable[str]) -> list[str]:
    """Return the digits of the phones, without the code of Brazil."""
    found: dict[str, None] = {}
    for phone in phones:
        digits = "".join(_DIGIT.findall(phone))
        if len(digits) > 11:
            digits = digits.removeprefix("55")
        if len(digits) >= FEWEST_DIGITS:
            found[digits] = None
    return list(found)


def _phone(digits: str) -> str:
    return rf"(?<!\d)(?:\+?\s?55{_BETWEEN})?\(?{_BETWEEN.join(digits)}(?!\d)"

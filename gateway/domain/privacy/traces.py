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
        self._by_first: dict[str, list[list[str]]] = {}
        for words in self.names:
            self._by_first.setdefault(words[0], []).append(words)
        emails = (email.strip() for email in (*person.emails, *person.aliases))
        self._emails = {email: email.casefold() for email in emails if email}
        self._phones = phones_of(person.phones)

    def redact(self, text: str, *, close: bool) -> str:
        """Return the text without the traces; `close`: the text is about this person."""
        exact = self._exact(text)
        if exact:
            text = re.sub("|".join(exact), MARK, text, flags=re.IGNORECASE)
        found = list(_WORD.finditer(text))
        folded = [fold(one.group()) for one in found]
        gone: set[int] = set()
        for start, word in enumerate(folded):
            for words in self._by_first.get(word, ()):
                if folded[start : start + len(words)] == words:
                    gone.update(range(start, start + len(words)))
        if close:
            gone |= {place for place, word in enumerate(folded) if word in self.words}
        if not gone:
            return text
        parts, end = list[str](), 0
        for place in sorted(gone):
            parts += (text[end : found[place].start()], MARK)
            end = found[place].end()
        return "".join((*parts, text[end:]))

    def _exact(self, text: str) -> list[str]:
        """Return patterns of the emails and phones that may be in a text: few are in one."""
        plain = text.casefold()
        patterns = [re.escape(email) for email, folded in self._emails.items() if folded in plain]
        digits = "".join(_DIGIT.findall(text)) if self._phones else ""
        phones = [phone for phone in self._phones if phone in digits]
        return [*patterns, _any_of(phones)] if phones else patterns

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


def _any_of(phones: Iterable[str]) -> str:
    numbers = "|".join(_BETWEEN.join(digits) for digits in phones)
    return rf"(?<!\d)(?:\+?\s?55{_BETWEEN})?\(?(?:{numbers})(?!\d)"

"""Finds a person in text, and takes the person out of it, in one pass whatever is known of it.

A person is recognised by the emails, the phones and the names: in a text that an owner wrote about
this person by each word of a name, in other texts by the whole name.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy.automaton import Automaton
from gateway.domain.privacy.escapes import decoded
from gateway.domain.privacy.mailboxes import HIDDEN, MARKS, Mailboxes
from gateway.records.values.folding import fold

MARK = "***"
"""What stands for a trace."""
SHORTEST = 3
"""Letters of a word, or of a whole name, that can identify somebody."""
FEWEST_DIGITS = 8
PARTICLES = frozenset({"das", "dos", "del", "von", "van", "der", "den", "los", "las", "the", "and"})
_NOTHING = re.compile(f"[{HIDDEN}]+")
# An underscore joins words in names of files.
_WORD = re.compile(rf"[^\W_]+(?:[{MARKS}{HIDDEN}]+[^\W_]*)*")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_NO_DIGITS = re.compile(r"\D+")
_HYPHENS = "\\-\u2010-\u2015\u2212\ufe63\uff0d"
_BETWEEN = re.compile(rf"[\s().{_HYPHENS}/{HIDDEN}]{{0,4}}")
_BEFORE = re.compile(r"(?:\+ ?)?\(?\Z")
_PREFIXES = ("", "55", "0055", "0", "00")
"""What may stand before a phone: the code of Brazil, a trunk prefix, that of other countries."""
_OTHER = "\0"
"""Stands for a word of no name."""


class Traces:
    """The traces of a person."""

    def __init__(self, person: Person) -> None:
        names = (_words(name) for name in dict.fromkeys(person.names))
        self.names = [words for words in names if len("".join(words)) >= SHORTEST]
        self.words = {
            word
            for words in self.names
            for word in words
            if len(word) >= SHORTEST and word not in PARTICLES and not word.isdigit()
        }
        known = dict.fromkeys(word for words in self.names for word in words)
        self._codes = {word: chr(code) for code, word in enumerate(known, 1)}
        self._names = Automaton(map(self._coded, self.names))
        rare = {max(words, key=len) for words in self.names}
        self._needed = {False: rare, True: rare | self.words}
        self._needed_signs = {close: Automaton(words) for close, words in self._needed.items()}
        self._mailboxes = Mailboxes((*person.emails, *person.aliases))
        phones = phones_of(person.phones)
        self._digits = Automaton(phones)
        self._phones = {prefix + phone for phone in phones for prefix in _PREFIXES}
        self._longest = max(map(len, self._phones), default=0)

    def redact(self, text: str, *, close: bool) -> str:
        """Return the text without the traces; `close`: the text is about this person."""
        spans = self._spans(text, close=close)
        parts, end = list[str](), 0
        for start, over in spans:
            parts += (text[end:start], MARK)
            end = over
        return "".join((*parts, text[end:])) if parts else text

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
        words = self._likely(text, close=close)
        return (
            self._names.within(self._coded(words))
            or (close and not self.words.isdisjoint(words))
            or self._mailboxes.within(text)
            or any(True for _ in self._phone_spans(text))
        )

    def within_coded(self, text: str, *, close: bool) -> bool:
        """Return whether a text that may be JSON or a form holds a trace, in escapes too."""
        return any(self.within(one, close=close) for one in decoded(text))

    def within_key(self, text: str) -> bool:
        """Return whether a key of something of the person holds a trace, also joined to words."""
        joined = any(self._mailboxes.within(one, joined=True) for one in decoded(text))
        return joined or self.within_coded(text, close=False)

    def _spans(self, text: str, *, close: bool) -> list[tuple[int, int]]:
        """Return where the traces are, in order, each apart."""
        exact = [*self._mailboxes.spans(text), *self._phone_spans(text)]
        if gone := self._named(text, close=close):
            exact += [
                word.span() for place, word in enumerate(_WORD.finditer(text)) if place in gone
            ]
        apart: list[tuple[int, int]] = []
        for start, end in sorted(exact):
            if apart and start < apart[-1][1]:
                apart[-1] = apart[-1][0], max(end, apart[-1][1])
            else:
                apart.append((start, end))
        return apart

    def _named(self, text: str, *, close: bool) -> set[int]:
        """Return which words of a text, by number, are of a name."""
        words = self._likely(text, close=close)
        spans = self._names.spans(self._coded(words))
        gone = {place for start, end in spans for place in range(start, end)}
        if close:
            gone |= {place for place, word in enumerate(words) if word in self.words}
        return gone

    def _likely(self, text: str, *, close: bool) -> list[str]:
        """Return the words of a text, or none if it has no word that a name needs, as most have."""
        needed = self._needed[close]
        if not needed or (text.isascii() and not self._needed_signs[close].within(text.lower())):
            return []
        words = _words(text)
        return [] if needed.isdisjoint(words) else words

    def _coded(self, words: Iterable[str]) -> str:
        """Return a sign for each word."""
        return "".join([self._codes.get(word, _OTHER) for word in words])

    def _phone_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where phones are: whole groups of digits with little between them."""
        if not self._phones or not self._digits.within(_ascii(_NO_DIGITS.sub("", text))):
            return
        groups = list(_DIGITS.finditer(text))
        over = 0
        for place, first in enumerate(groups):
            if first.start() < over:
                continue
            digits, end, phone_end = "", first.start(), 0
            # Each adds a digit, so there are few.
            for group in groups[place : place + self._longest]:
                digits += _ascii(group[0])
                if len(digits) > self._longest or not _near(text, end, group.start()):
                    break
                end = group.end()
                if digits in self._phones:
                    phone_end = end
            if phone_end:
                before = _BEFORE.search(text, max(over, first.start() - 3), first.start())
                over = phone_end
                yield (before.start() if before else first.start()), phone_end


def _words(text: str) -> list[str]:
    """Return the words of a text, folded; the same word is folded once."""
    words: list[str] = _WORD.findall(text)
    folded = {word: fold(word if word.isascii() else _NOTHING.sub("", word)) for word in set(words)}
    return [folded[word] for word in words]


def _near(text: str, end: int, start: int) -> bool:
    """Return whether only what may stand inside a phone is between two groups of digits."""
    return _BETWEEN.fullmatch(text, end, start) is not None


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.digit(one)) for one in digits)


def phones_of(phones: Iterable[str]) -> list[str]:
    """Return the digits of the phones, without the code of Brazil."""
    found: dict[str, None] = {}
    for phone in phones:
        digits = "".join(map(_ascii, _DIGIT.findall(phone)))
        if len(digits) > 11:
            digits = digits.removeprefix("55")
        if len(digits) >= FEWEST_DIGITS:
            found[digits] = None
    return list(found)

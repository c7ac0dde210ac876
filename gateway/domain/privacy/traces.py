"""Finds a person in text, and takes the person out of it, in one pass whatever is known of it.

A person is recognised by the emails, the phones and the names: in a text that an owner wrote about
this person by each word of a name, in other texts by the whole name.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy.automaton import Automaton
from gateway.records.values.folding import fold

MARK = "***"
"""What stands for a trace."""
SHORTEST = 3
"""Letters of a word, or of a whole name, that can identify somebody."""
FEWEST_DIGITS = 8
PARTICLES = frozenset({"das", "dos", "del", "von", "van", "der", "den", "los", "las", "the", "and"})
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
# Soft hyphens, joiners, signs of direction and variation selectors: they show nothing in a word.
_HIDDEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_NOTHING = re.compile(f"[{_HIDDEN}]+")
# An underscore joins words in names of files.
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}{_HIDDEN}]+[^\W_]*)*")
# The time to sort a run of marks grows with the square of its length.
_SIGN = re.compile(rf".[{_MARKS}]{{0,8}}", re.S)
_TOO_MANY = re.compile(f"(?<=[{_MARKS}]{{8}})[{_MARKS}]+")
_AT = re.compile("[@\ufe6b\uff20]")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_NO_DIGITS = re.compile(r"\D+")
_HYPHENS = "\\-\u2010-\u2015\u2212\ufe63\uff0d"
_BETWEEN = re.compile(rf"[\s().{_HYPHENS}/{_HIDDEN}]{{0,4}}")
_BEFORE = re.compile(r"(?:\+ ?)?\(?\Z")
_PREFIXES = ("", "55", "0055", "0", "00")
"""What may stand before a phone: the code of Brazil, a trunk prefix, that of other countries."""
_BREAKS = re.compile(r"\\+[bfnrt]")
_ESCAPES = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
_SLASHES = re.compile(r"\\+")
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
        emails = [
            email for address in (*person.emails, *person.aliases) if (email := address.strip())
        ]
        self._emails = Automaton(_signs(email).text for email in emails)
        self._flat_emails = Automaton(map(_flat, emails))
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
            or bool(self._email_spans(text))
            or any(True for _ in self._phone_spans(text))
        )

    def within_coded(self, text: str, *, close: bool) -> bool:
        """Return whether a text that may be JSON or a form holds a trace, in escapes too."""
        return any(self.within(one, close=close) for one in _decoded(text))

    def _spans(self, text: str, *, close: bool) -> list[tuple[int, int]]:
        """Return where the traces are, in order, each apart."""
        exact = [*self._email_spans(text), *self._phone_spans(text)]
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

    def _email_spans(self, text: str) -> list[tuple[int, int]]:
        if _AT.search(text) is None or not self._flat_emails.within(_flat(text)):
            return []
        signs = _signs(text)
        return [
            (signs.starts[start], signs.ends[end - 1])
            for start, end in self._emails.spans(signs.text)
        ]

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


class _Signs(NamedTuple):
    """The characters of a text in one form, and where each of them was."""

    text: str
    starts: range | list[int]
    ends: range | list[int]


def _signs(text: str) -> _Signs:
    """Return a text without case, width and hidden signs; accents and ß tell mailboxes apart."""
    if text.isascii():
        return _Signs(text.lower(), range(len(text)), range(1, len(text) + 1))
    parts, starts, ends = list[str](), list[int](), list[int]()
    for sign in _SIGN.finditer(text):
        if sign[0].isascii():
            part = sign[0].lower()
        else:
            part = _NOTHING.sub("", unicodedata.normalize("NFKC", sign[0]).lower())
            part = part.replace("ς", "σ")
        parts.append(part)
        starts += [sign.start()] * len(part)
        ends += [sign.end()] * len(part)
    return _Signs("".join(parts), starts, ends)


def _flat(text: str) -> str:
    """Return a text in a form in which it has an email if it has its signs: see _signs."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", _TOO_MANY.sub("", text)).lower().replace("ς", "σ")
    return _NOTHING.sub("", unicodedata.normalize("NFKD", text))


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


def _decoded(text: str) -> list[str]:
    """Return a text, and without the escapes of JSON and of forms if it has some."""
    found = [text]
    if "\\" in text:
        # However often JSON is in a text of JSON.
        found.append(_SLASHES.sub("", _ESCAPES.sub(_unescaped, _BREAKS.sub(" ", text))))
    if "%" in text:
        found.append(unquote(text))
    return found


def _unescaped(found: re.Match[str]) -> str:
    """Return the signs of some escapes, two for one beyond the first 65,536."""
    digits = found[0].replace("\\", "").replace("u", "")
    return bytes.fromhex(digits).decode("utf-16-be", "replace")


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

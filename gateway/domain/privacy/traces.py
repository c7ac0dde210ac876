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
FEW = 16
"""So many words are looked for one by one, before all words of a text are."""
PARTICLES = frozenset({"das", "dos", "del", "von", "van", "der", "den", "los", "las", "the", "and"})
_MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
# Soft hyphens, joiners, signs of direction and variation selectors: they show nothing in a word.
_HIDDEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_NOTHING = re.compile(f"[{_HIDDEN}]+")
# An underscore joins words in names of files.
_WORD = re.compile(rf"[^\W_]+(?:[{_MARKS}{_HIDDEN}]+[^\W_]*)*")
# The time to sort a run of marks grows with the square of its length.
_SIGN = re.compile(rf".[{_MARKS}]{{0,8}}", re.S)
_AT = re.compile("[@\ufe6b\uff20]")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")
_HYPHENS = "\\-\u2010-\u2015\u2212\ufe63\uff0d"
_BETWEEN = re.compile(rf"[\s().{_HYPHENS}/{_HIDDEN}]{{0,4}}")
_BEFORE = re.compile(r"(?:\+ ?)?\(?\Z")
_PREFIXES = ("", "55", "0055", "0", "00")
"""What may stand before a phone: the code of Brazil, a trunk prefix, that of other countries."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)
_PLAIN = frozenset('"\\/')


class _Word(NamedTuple):
    start: int
    end: int
    folded: str


class Traces:
    """The traces of a person."""

    def __init__(self, person: Person) -> None:
        names = [[one.folded for one in _words(name)] for name in dict.fromkeys(person.names)]
        self.names = [words for words in names if len("".join(words)) >= SHORTEST]
        self.words = {
            word for words in self.names for word in words
            if len(word) >= SHORTEST and word not in PARTICLES and not word.isdigit()
        }  # fmt: skip
        self._names = Automaton(self.names)
        self._rare = {max(words, key=len) for words in self.names}
        emails = (email.strip() for email in (*person.emails, *person.aliases))
        self._emails = Automaton([_signs(email).text for email in emails if email])
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
        return bool(self._spans(text, close=close))

    def within_coded(self, text: str, *, close: bool) -> bool:
        """Return whether a text that may be JSON or a form holds a trace, in escapes too."""
        return any(self.within(one, close=close) for one in _decoded(text))

    def _spans(self, text: str, *, close: bool) -> list[tuple[int, int]]:
        """Return where the traces are, in order, each apart."""
        exact = [*self._email_spans(text), *self._phone_spans(text)]
        words = _words(text) if self._may_name(text, close=close) else []
        gone = {
            place for start, end in self._names.spans(word.folded for word in words)
            for place in range(start, end)
        }  # fmt: skip
        if close:
            gone |= {place for place, word in enumerate(words) if word.folded in self.words}
        exact += [(words[place].start, words[place].end) for place in gone]
        apart: list[tuple[int, int]] = []
        for start, end in sorted(exact):
            if apart and start < apart[-1][1]:
                apart[-1] = apart[-1][0], max(end, apart[-1][1])
            else:
                apart.append((start, end))
        return apart

    def _may_name(self, text: str, *, close: bool) -> bool:
        """Return False if a text has no word that a name needs, as most texts have none."""
        needed = self.words | self._rare if close else self._rare
        if len(needed) > FEW or not text.isascii():
            return bool(needed)
        lower = text.lower()
        return any(word in lower for word in needed)

    def _email_spans(self, text: str) -> list[tuple[int, int]]:
        if _AT.search(text) is None:
            return []
        signs = _signs(text)
        return [
            (signs.starts[start], signs.ends[end - 1])
            for start, end in self._emails.spans(signs.text)
        ]

    def _phone_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where phones are: whole groups of digits with little between them."""
        groups = list(_DIGITS.finditer(text)) if self._phones else []
        if not self._digits.spans(_ascii("".join(group[0] for group in groups))):
            return
        over = 0
        for place, first in enumerate(groups):
            if first.start() < over:
                continue
            digits, end, found = "", first.start(), 0
            # Each adds a digit, so there are few.
            for group in groups[place : place + self._longest]:
                digits += _ascii(group[0])
                if len(digits) > self._longest or not _near(text, end, group.start()):
                    break
                end = group.end()
                if digits in self._phones:
                    found = end
            if found:
                before = _BEFORE.search(text, max(over, first.start() - 3), first.start())
                over = found
                yield (before.start() if before else first.start()), found


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


def _words(text: str) -> list[_Word]:
    """Return the words of a text; the same word is folded once."""
    known: dict[str, str] = {}
    words: list[_Word] = []
    for found in _WORD.finditer(text):
        word = found[0]
        folded = known.get(word)
        if folded is None:
            folded = known[word] = fold(word if word.isascii() else _NOTHING.sub("", word))
        words.append(_Word(found.start(), found.end(), folded))
    return words


def _near(text: str, end: int, start: int) -> bool:
    """Return whether only what may stand inside a phone is between two groups of digits."""
    return _BETWEEN.fullmatch(text, end, start) is not None


def _ascii(digits: str) -> str:
    return digits if digits.isascii() else "".join(str(unicodedata.digit(one)) for one in digits)


def _decoded(text: str) -> list[str]:
    """Return a text, and without the escapes of JSON and of forms if it has some."""
    found = [text]
    if "\\" in text:
        plain = _ESCAPE.sub(_unescaped, text)
        # JSON in a text of JSON.
        found.append(_ESCAPE.sub(_unescaped, plain) if "\\" in plain else plain)
    if "%" in text:
        found.append(unquote(text))
    return found


def _unescaped(found: re.Match[str]) -> str:
    """Return what an escape stands for; a line break and the like end a word."""
    if found[1]:
        return chr(int(found[1], 16))
    return found[2] if found[2] in _PLAIN else " "


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

"""Finds e-mail addresses in text, each as a whole: `ana@x.com` is not in `mariana@x.com`.

A text is read as imports and contacts read it: without case, width and hidden signs, and a domain
as DNS looks it up. Letters, digits and underscores beside an address belong to it, and so does what
joins them to it, such as the dot of `x.ana@x.com` or `ana@x.com.br`: that is another address. Other
signs separate, also those that hardly any address has: `email=ana@x.com` is this one.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gateway.domain.privacy.automaton import Automaton
from gateway.records.values.emails import LONGEST, ascii_domain
from gateway.records.values.folding import INVISIBLE

MARKS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
HIDDEN = rf"{INVISIBLE}\u180f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\U000e0000-\U000e0fff"
"""What shows nothing in a word, variation selectors too, as the inside of a class."""
_NOTHING = re.compile(f"[{HIDDEN}]+")
# The time to sort a run of marks grows with the square of its length.
_SIGN = re.compile(rf".[{MARKS}]{{0,8}}", re.S)
_TOO_MANY = re.compile(f"([{MARKS}]{{8}})[{MARKS}]+")
_AT = re.compile("[@\ufe6b\uff20]")
_JOINERS = frozenset(".-+'%&#$^~`\u2019\u2010")
"""Signs that join two parts of what stands before the @; at its beginning they are of the text."""
_IDEOGRAPHIC = "\u3002"
"""The full stop of Chinese and Japanese, which IDNA reads as a dot."""
_PLAIN = re.compile(r"[a-z0-9.-]+")
_OF_DOMAINS = frozenset(f"-.{_IDEOGRAPHIC}")
# Stops without a label behind them: the end of a sentence, a dash.
_DOMAIN_END = re.compile(
    rf"(?<!-)-++(?=[.{_IDEOGRAPHIC}]|\Z)|[.{_IDEOGRAPHIC}](?=[-.{_IDEOGRAPHIC}]|\Z)"
)


class Mailboxes:
    """Some addresses, which texts may have in any spelling."""

    def __init__(self, emails: Iterable[str]) -> None:
        self._domains: dict[str, set[str]] = {}
        """The domains of each part before the @."""
        needed = set[str]()
        for email in emails:
            local, _, domain = email.strip().rpartition("@")
            local = _signs(local).text
            ascii_forms = {ascii_domain(domain), ascii_domain(_signs(domain).text)}
            if local and domain:
                self._domains.setdefault(local, set()).update(ascii_forms)
                # Each label of a domain may be in either form.
                varies = any("xn--" in form for form in ascii_forms)
                needed.add(flat(f"{local}@" if varies else f"{local}@{domain}"))
        self._sizes = sorted({len(local) for local in self._domains})
        self._needed = Automaton(needed)

    def within(self, text: str, *, joined: bool = False) -> bool:
        """Return whether the text has one of the addresses.

        `joined`: the text is of the person, so that `tasks-5-ana@x.com-2026` has ana@x.com.
        """
        return next(self.spans(text, joined=joined), None) is not None

    def spans(self, text: str, *, joined: bool = False) -> Iterator[tuple[int, int]]:
        """Yield where the addresses are, in the order of their ends."""
        if _AT.search(text) is None or not self._needed.within(flat(text)):
            return
        signs = _signs(text)
        at = signs.text.find("@")
        while at >= 0:
            for start in [at - size for size in self._sizes if size <= at]:
                domains = self._domains.get(signs.text[start:at])
                begins = domains and _begins(signs.text, start, joined=joined)
                # As programs for chats write slanted letters.
                slanted = not begins and signs.text[max(start - 1, 0) : start] == "_"
                if domains and (begins or slanted):
                    for domain in _after(signs.text, at + 1, joined=joined):
                        end = at + 1 + len(domain)
                        if slanted and signs.text[end : end + 1] != "_":
                            continue
                        if ascii_domain(domain) in domains:
                            yield signs.starts[start], signs.ends[at + len(domain)]
                            break
            at = signs.text.find("@", at + 1)


def _begins(text: str, start: int, *, joined: bool) -> bool:
    """Return whether what stands before this place is no part of an address that goes on here."""
    end = start
    while end and (text[end - 1] in _JOINERS or unicodedata.category(text[end - 1])[0] == "M"):
        end -= 1
    if not end or ".." in text[end:start]:
        return True
    before = text[end - 1]
    if joined and (before == "_" or text[start - 1] in _JOINERS):
        return True
    if before != "_" and unicodedata.category(before)[0] not in "LN":
        return True
    if end == start and text[start].isascii() and unicodedata.category(before) == "Lo":
        # Of a script without capitals, many of which have no blanks between words.
        return True
    # As programs write a break.
    return end == start and text[max(end - 2, 0) : end] in ("\\n", "\\r", "\\t")


def _after(text: str, start: int, *, joined: bool) -> Iterator[str]:
    """Yield the domain that begins here: as far as it may go, then up to stops that may end it."""
    end, most = start, min(len(text), start + LONGEST)
    while end < most and (text[end] in _OF_DOMAINS or unicodedata.category(text[end])[0] in "LMN"):
        end += 1
    domain = text[start:end]
    yield domain
    if found := _DOMAIN_END.search(domain):
        domain = domain[: found.start()]
        yield domain
    if _IDEOGRAPHIC in domain:
        yield domain.partition(_IDEOGRAPHIC)[0]
    plain = _PLAIN.match(domain)
    if plain and plain.end() < len(domain) and unicodedata.category(domain[plain.end()]) == "Lo":
        yield plain[0]
    if joined:
        yield from (domain[: dash.start()] for dash in re.finditer("-", domain))


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
        part = sign[0].lower() if sign[0].isascii() else _bare(sign[0])
        parts.append(part)
        starts += [sign.start()] * len(part)
        ends += [sign.end()] * len(part)
    return _Signs("".join(parts), starts, ends)


def flat(text: str) -> str:
    """Return a text in a form in which it has an address if it has its signs: see _signs."""
    if text.isascii():
        return text.lower()
    return _bare(_TOO_MANY.sub(r"\1", text)).replace(_IDEOGRAPHIC, ".")


def _bare(text: str) -> str:
    """Return a text taken apart, in lower case, without hidden signs."""
    # Taken apart, a letter has the same form wherever hidden signs were in it.
    text = unicodedata.normalize("NFKD", text).lower().replace("ς", "σ")
    return _NOTHING.sub("", text)

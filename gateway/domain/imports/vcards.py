"""Reads the properties of a vCard as the cells of a contact."""

import codecs
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.imports.decoding import with_nul
from gateway.domain.imports.splitting import bad
from gateway.records.values.csv_cells import inert
from gateway.records.values.strictjson import dumps

HEADINGS = ("name", "email", "phone", "position", "company", "tags", "notes")
# What vobject reads fast; of other heads its expression takes forever.
_VALUE = r'(?:"[^"]*"|[^";:,]*)'
_HEAD = re.compile(rf"(?:[\w-]+\.)?[\w-]+(?:;[\w-]+(?:={_VALUE}(?:,{_VALUE})*)?)*:", re.ASCII)
_CHARSETS = re.compile(r";CHARSET=([^;:]+)")
_NO_CHARSETS = frozenset(("punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined"))
"""Encodings of Python for single names and literals; some take the square of the length."""
MOST_HEAD = 2_000
"""Characters before the value of a property."""
_NO_LABELS = frozenset(("internet", "pref", "voice", "x-internet", "main", "other"))
_FAX = frozenset(("fax", "pager", "modem"))
_NOTED = ("NICKNAME", "BDAY", "ANNIVERSARY", "URL", "ROLE", "IMPP", "X-SOCIALPROFILE", "RELATED")
_GROUPS = ("X-ADDRESSBOOKSERVER-KIND", "KIND")
_NAMES = ("FN", "N", "EMAIL", "TEL", "ORG", "TITLE", "ADR", "NOTE", "CATEGORIES", "X-ABLABEL")
_USED = re.compile(
    rf"(?:[\w-]+\.)?(?:{'|'.join((*_NAMES, *_NOTED, *_GROUPS))})[;:]", re.ASCII | re.I
)
MOST_PROPERTIES = 1_000
"""Properties of a card that are read, of which each takes time; groups have more of others."""


@dataclass(slots=True)
class Property:
    """A property of a card as it stands in the file, with the lines that continue it."""

    line: int
    text: str
    quoted: bool = False
    """Whether a line of it ends with a soft break of quoted-printable."""
    _more: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether the next line continues it without a blank at its beginning."""
        return self.quoted and (self._more[-1] if self._more else self.text).endswith("=")

    def add(self, line: str) -> None:
        """Add a line that continues it."""
        if self.is_open:
            self._more.append(f"\n{line}")
        else:
            self._more.append(line[1:])

    @property
    def whole(self) -> str:
        """The property in one line."""
        return "".join((self.text, *self._more))


@dataclass(frozen=True, slots=True)
class _Value:
    """What a property says, with its label and whether it is the preferred one of its kind."""

    name: str
    group: str
    raw: str
    types: frozenset[str]
    preferred: bool


def cells_of(properties: Sequence[Property]) -> list[str] | None:
    """Return the cells of HEADINGS; None for a card that is no person, but a group of some."""
    used = [prop for prop in properties if _USED.match(prop.text)]
    if len(used) > MOST_PROPERTIES:
        raise bad(
            used[MOST_PROPERTIES].line,
            "too_many",
            f"A card has at most {MOST_PROPERTIES:,} properties; shorten the card with this line.",
        )
    values = [value for prop in used if (value := _read(prop)) is not None]
    if any(prop.name in _GROUPS and prop.raw.strip().lower() == "group" for prop in values):
        return None
    by_name: dict[str, list[_Value]] = {}
    for prop in values:
        by_name.setdefault(prop.name, []).append(prop)
    labels = {prop.group: prop.raw for prop in by_name.get("X-ABLABEL", ()) if prop.group}
    emails, phones = _ordered(by_name.get("EMAIL", ())), _ordered(by_name.get("TEL", ()))
    called = [prop for prop in phones if prop.types.isdisjoint(_FAX)]
    organization = [part for prop in by_name.get("ORG", ())[:1] for part in _parts(prop.raw)]
    company = organization[0] if organization else ""
    email = _text(emails[0].raw) if emails else ""
    phone = _number(called[0].raw) if called else ""
    name = _name(by_name) or company or email.partition("@")[0] or phone
    noted = [
        *(_note(prop, _text(prop.raw), labels) for prop in emails[1:]),
        *(_note(prop, _number(prop.raw), labels) for prop in phones if prop not in called[:1]),
        *(_note(prop, ", ".join(_parts(prop.raw)), labels) for prop in by_name.get("ADR", ())),
        *(f"ORG: {part}" for part in organization[1:]),
        *(
            _note(prop, _text(prop.raw), labels)
            for kind in _NOTED
            for prop in by_name.get(kind, ())
        ),
        *(_note(prop, _text(prop.raw), labels) for prop in by_name.get("TITLE", ())[1:]),
    ]
    notes = [_text(prop.raw) for prop in by_name.get("NOTE", ())]
    tags = [
        tag for prop in by_name.get("CATEGORIES", ()) for tag in _texts(prop.raw) if tag.strip()
    ]
    title = by_name.get("TITLE", ())
    cells = (
        name, email, phone, _text(title[0].raw) if title else "", company, "",
        "\n".join(text for text in (*notes, *noted) if text),
    )  # fmt: skip
    written = [inert(cell) if cell else "" for cell in cells]
    written[HEADINGS.index("tags")] = _list(tags)
    return written


def _read(prop: Property) -> _Value | None:
    """Return what a property says; None when it is none."""
    # Only an import of cards pays for it.
    from vobject.base import textLineToContentLine

    text = prop.whole
    head = _HEAD.match(text)
    if head is None or head.end() > MOST_HEAD:
        return None
    start = head[0].upper()
    try:
        if "QUOTED-PRINTABLE" in start:
            _must_be_known(start)
        line = textLineToContentLine(start + text[head.end() :])
        # Some charsets have lone surrogates.
        line.value.encode()
    except (LookupError, ValueError, TypeError):
        # vobject has a TypeError for a line with two encodings.
        raise bad(
            prop.line,
            "invalid_encoding",
            "This line is not in the encoding that it names; save the card as vCard 3.0 or 4.0.",
        ) from None
    if "\0" in line.value:
        raise with_nul(prop.line)
    words = [*line.singletonparams, *line.params.get("TYPE", ())]
    types = frozenset(word.strip().lower() for text in words for word in text.split(","))
    preferred = "pref" in types or "PREF" in line.params
    return _Value(line.name, line.group or "", line.value, types, preferred)


def _must_be_known(head: str) -> None:
    """Raise LookupError when the head of a property names a charset that no file is written in."""
    for names in _CHARSETS.findall(head):
        for name in filter(None, names.replace('"', "").split(",")):
            if codecs.lookup(name).name in _NO_CHARSETS:
                raise LookupError(name)


def _ordered(values: Iterable[_Value]) -> list[_Value]:
    """Return the filled values, the preferred ones first."""
    return sorted((one for one in values if one.raw.strip()), key=lambda one: not one.preferred)


def _name(by_name: dict[str, list[_Value]]) -> str:
    shown = next((text for one in by_name.get("FN", ()) if (text := _text(one.raw).strip())), "")
    if shown or "N" not in by_name:
        return shown
    family, given, middle, prefix, suffix, *_ = [*_split(by_name["N"][0].raw), *[""] * 5]
    return " ".join(filter(None, (prefix, given, middle, family, suffix)))


def _note(one: _Value, text: str, labels: dict[str, str]) -> str:
    """Return a line of the notes: `TEL (work): …`."""
    if not text:
        return ""
    # Apple writes its own labels as _$!<Other>!$_.
    own = _text(labels.get(one.group, "")).removeprefix("_$!<").removesuffix(">!$_")
    label = own or " ".join(sorted(one.types - _NO_LABELS))
    return f"{one.name} ({label}): {text}" if label else f"{one.name}: {text}"


def _number(raw: str) -> str:
    return _text(raw).strip().removeprefix("tel:").replace(";ext=", " x")


def _texts(raw: str) -> list[str]:
    from vobject.icalendar import stringToTextValues

    found: list[str] = stringToTextValues(raw)
    return found


def _text(raw: str) -> str:
    """Return the text of a value whose commas are not escaped in all versions."""
    return ",".join(_texts(raw)).replace("\r\n", "\n").strip()


def _split(raw: str) -> list[str]:
    from vobject.vcard import splitFields

    fields: list[Any] = splitFields(raw)
    return [
        (one if isinstance(one, str) else " ".join(one)).strip().replace("\n", ", ")
        for one in fields
    ]


def _parts(raw: str) -> list[str]:
    return [part for part in _split(raw) if part]


def _list(items: Sequence[str]) -> str:
    return dumps([item.strip() for item in items]) if items else ""

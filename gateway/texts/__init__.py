"""The texts that people read, by key, in each language: gettext catalogues, read with Babel.

A catalogue is a folder of `.po` files, one an area; `msgid` is the key. Placeholders are those of
`str.format`; a text with a plural has a form for each, and is chosen by its value `count`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from gettext import c2py
from math import floor
from pathlib import Path
from typing import Any

from babel import Locale
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal

from outbox.durations import SECOND

FOLDER = Path(__file__).parent
HOME = "pt-BR"
"""The language of stores, and of mails to people who have chosen none."""
CODES = ("en", HOME)
"""The languages, as HTML and HTTP name them; the first is used when a reader asks for no other."""
BOTH = (HOME, CODES[0])
"""The languages of a mail to an account whose language is not known."""
CURRENCY = "BRL"
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
LARGEST = 1e13
"""Below it a float has every centavo."""
MOST_ASKED = 20
"""Languages of one Accept-Language header that are looked at."""


@dataclass(frozen=True, eq=False, slots=True)
class Texts:
    """The texts of one language; a key without a text there has its text in English."""

    code: str
    locale: Locale
    forms: Mapping[str, Sequence[str]]
    form_of: Callable[[int], int]
    """The form of a number."""

    def __call__(self, key: str, **values: Any) -> str:
        """Return the text of a key with its values filled in. Raise KeyError for an unknown key.

        Whole numbers stand as the language writes them.
        """
        forms = self.forms[key]
        text = forms[0] if len(forms) == 1 else forms[self._form(values["count"])]
        filled = {
            name: self.number(value) if type(value) is int else value
            for name, value in values.items()
        }
        return text.format(**filled) if values else text

    def __contains__(self, key: str) -> bool:
        return key in self.forms

    def __iter__(self) -> Iterator[str]:
        return iter(self.forms)

    def get(self, key: str, default: str) -> str:
        """Return the text of a key without values, or `default` when there is none."""
        return self(key) if key in self else default

    def number(self, value: float, places: int = 0) -> str:
        """Return a number with at most so many decimals: `1,234.5`."""
        if type(value) is int and value >= 0:
            return f"{value:,}".translate(_signs(self.code)[1])
        pattern = "#,##0" + (f".{'#' * places}" if places else "")
        return str(format_decimal(value, pattern, self.locale))

    @property
    def name(self) -> str:
        """The name of the language in itself: `Português (Brasil)`."""
        return _named(self.locale, self.locale)

    @property
    def separator(self) -> str:
        """What separates the cells of a CSV file in spreadsheets of this language."""
        return ";" if self.numbers.endswith(",56") else ","

    @property
    def numbers(self) -> str:
        """The form of numbers in this language, by the name that it has in files: `1,234.56`."""
        return self.number(1234.56, 2)

    def money(self, amount: float) -> str:
        """Return an amount in BRL: `R$ 1.234,56` in Portuguese."""
        if not 0 <= amount < LARGEST:
            return str(format_currency(amount, CURRENCY, locale=self.locale))
        # As Babel writes it, which takes as long as all the rest of a cell of a list.
        before, signs, after = _signs(self.code)
        return before + f"{amount:,.2f}".translate(signs) + after

    def percent(self, part: float | None) -> str:
        """Return a part of 1 as text, rounded down: `100 %` only when nothing is missing."""
        return "–" if part is None else f"{self.number(floor(part * 1000) / 10, 1)} %"

    def lasting(self, micros: int) -> str:
        """Return a wait in its largest unit, with a decimal if it needs one: `1.5 h`, `5 s`."""
        seconds = max(0, micros) / SECOND
        size, unit = next((one for one in UNITS if seconds >= one[0]), (1, "s"))
        return f"{self.number(round(seconds / size, 1), 1)} {unit}"

    def took(self, micros: int | None) -> str:
        """Return a short duration: `0.8 ms`, `42 ms`, `1.25 s`."""
        if micros is None:
            return "–"
        if micros < 10_000:
            return f"{self._fixed(micros / 1000, 1)} ms"
        return f"{micros // 1000} ms" if micros < SECOND else f"{self._fixed(micros / SECOND, 2)} s"

    def size(self, count: int) -> str:
        """Return a number of bytes: `512 B`, `1.5 KiB`."""
        return f"{count} B" if count < 1024 else f"{self._fixed(count / 1024, 1)} KiB"

    def _form(self, count: int | str) -> int:
        """Return the form for a count, or for a text of one: `1`, or `1,000+`, which is many."""
        text = str(count)
        return self.form_of(int(text)) if text.isdecimal() else -1

    def _fixed(self, value: float, places: int) -> str:
        return str(format_decimal(value, f"#,##0.{'0' * places}", self.locale))


@cache
def _signs(code: str) -> tuple[str, Mapping[int, str], str]:
    """Return what stands before an amount, the signs for those of Python, and what stands after."""
    shown = str(format_currency(12_345.6, CURRENCY, locale=Locale.parse(code, sep="-")))
    before, _, rest = shown.partition("12")
    return before, str.maketrans({",": rest[0], ".": rest[4]}), rest[7:]


@cache
def of(code: str) -> Texts:
    """Return the texts of a language of CODES."""
    own, plural = _read(code)
    locale = Locale.parse(code, sep="-")
    names = {f"option.{one}": (_named(Locale.parse(one, sep="-"), locale),) for one in CODES}
    every = own if code == CODES[0] else {**of(CODES[0]).forms, **own}
    return Texts(code, locale, {**every, **names, "lang": (code,)}, plural)


def own_keys(code: str) -> frozenset[str]:
    """Return the keys that the catalogue of a language has itself."""
    return frozenset(_read(code)[0])


# Browsers send few different ones.
@lru_cache(maxsize=200)
def asked(header: str) -> str:
    """Return the language of CODES that a header Accept-Language prefers: `pt-PT` gets `pt-BR`."""
    wanted = []
    for place, part in enumerate(header.split(",", MOST_ASKED)[:MOST_ASKED]):
        tag, _, weight = part.partition(";")
        try:
            quality = float(weight.partition("=")[2] or 1)
        except ValueError:
            continue
        if quality > 0:
            wanted.append((-quality, place, tag.strip().lower()))
    for _, _, tag in sorted(wanted):
        if code := known(tag):
            return code
    return CODES[0]


def known(tag: str) -> str:
    """Return the language of CODES that a lower-case tag such as `pt` or `pt-pt` means, or ""."""
    language = tag.partition("-")[0]
    for code in CODES:
        if language == code.partition("-")[0]:
            return code
    return ""


def _named(language: Locale, reader: Locale) -> str:
    """Return the name of a language in that of the reader, as it begins a line."""
    name = language.get_display_name(reader) or str(language)
    return f"{name[0].upper()}{name[1:]}"


def _read(code: str) -> tuple[Mapping[str, Sequence[str]], Callable[[int], int]]:
    forms: dict[str, Sequence[str]] = {}
    plural = c2py("n != 1")
    for path in sorted((FOLDER / code.replace("-", "_")).glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, abort_invalid=True)
        plural = c2py(catalogue.plural_expr)
        for message in catalogue:
            if not message.id:
                continue
            several = isinstance(message.id, tuple)
            key = str(message.id[0] if several else message.id)
            if key in forms:
                raise ValueError(f"{path.name}: the key {key} has a text already")
            texts = message.string if several else (message.string,)
            forms[key] = tuple(str(text) for text in texts or ())
    return forms, plural

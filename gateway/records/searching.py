"""Turns what a person types into a search into conditions on the folded columns of a record.

Each word must be in the record, in any order. `folded` has the texts of a record, `digits` its
phones and documents as words of digits without mask, each between spaces. Both ride along in the
index of the newest records, so a search reads the index alone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.records.values import cnpj
from gateway.records.values.folding import BETWEEN, fold

MOST = 10
"""Words that count; each further one only narrows what is found."""
SHORTEST = 3
"""Fewest digits that are looked for in phones and documents."""
DIGITS = 200
"""Characters of the column `digits`."""
_APART = re.compile(r"[^0-9A-Za-z]+")
_NUMBER = re.compile(r"[0-9+().\-/]*[0-9][0-9+().\-/]*", re.ASCII)
_CODE = re.compile(r"#?([a-z]+)-?0*([0-9]{1,6})", re.ASCII)
_LABELS = frozenset({"cpf", "cnpj", "cpf/cnpj", "tel", "fone", "telefone", "phone"})
"""Words that people copy with a number."""

Has = Callable[[str, str], str]
"""Returns the condition that a column has a text."""


def digits_of(values: Iterable[str | None]) -> str:
    """Return phones and documents as the column `digits` has them."""
    words = [_APART.sub("", value).lower() for value in values if value]
    words = [word for word in words if word]
    return f" {' '.join(words)} "[:DIGITS] if words else ""


def words_of(text: str) -> list[str]:
    """Return the words of a search, folded, each once."""
    return list(dict.fromkeys(fold(text).split()))[:MOST]


def is_searchable(text: str) -> bool:
    # A search must not match across two folded fields, and no stored text has a NUL.
    return {BETWEEN, "\0"}.isdisjoint(text)


def condition(text: str, args: list[Any], *, numbered: bool, anywhere: bool) -> str:
    """Return the condition in SQL that a record matches, and append its values; the first is $2.

    `anywhere` looks for numbers in any form, too, and with `numbered` also in `digits`.
    """
    places: dict[str, str] = {}

    def has(column: str, wanted: str) -> str:
        if wanted not in places:
            args.append(wanted)
            places[wanted] = f"${len(args) + 1}"
        place = places[wanted]
        return f"/*sqlite instr({column}, {place})*/ /*postgres strpos({column}, {place})*/ > 0"

    words = words_of(text)
    if not anywhere:
        return " and ".join(has("folded", word) for word in words)
    if numbered:
        joined = _APART.sub("", text)
        if (document := cnpj.normal(joined)) is not None:
            return _any([has("digits", document.lower()), _all(has("folded", w) for w in words)])
        if any(map(_has_digit, words)):
            words = [word for word in words if word.rstrip(":") not in _LABELS] or words
    return _all(_run(run, has, numbered=numbered) for run in _runs(fold(text).split(), words))


def _runs(typed: Sequence[str], words: Sequence[str]) -> list[list[str]]:
    """Return the words in runs: neighbours that are digits and signs of a phone are one."""
    runs: list[list[str]] = []
    kept, before = set(words), False
    for word in typed:
        if word not in kept:
            continue
        number = _NUMBER.fullmatch(word) is not None
        if number and before:
            runs[-1].append(word)
        elif [word] not in runs:
            runs.append([word])
        before = number
    return runs[:MOST]


def _run(run: Sequence[str], has: Has, *, numbered: bool) -> str:
    """Return the condition that a record has the run: as one number, or each of its words."""
    ways = []
    if numbered and len(run) > 1:
        ways += [has("digits", digits) for digits in _numbers("".join(run))]
    each = []
    for word in dict.fromkeys(run[:MOST]):
        forms = [has("folded", word)]
        if code := _CODE.fullmatch(word):
            forms.append(has("folded", f"{code[1]}-{int(code[2]):06}"))
        if numbered:
            forms += [has("digits", digits) for digits in _numbers(word)]
        each.append(_any(forms))
    return _any([*ways, _all(each)])


def _numbers(word: str) -> list[str]:
    """Return what the column `digits` has of a phone or a document that is typed so."""
    plain = _APART.sub("", word)
    if len(plain) < SHORTEST or not _has_digit(plain):
        return []
    if not plain.isdigit():
        return [plain]
    if len(plain) < 8:
        return [plain]
    # 0 is dialled before the area, 00 before the country.
    local = plain.lstrip("0")
    if len(local) in (12, 13) and local.startswith("55"):
        local = local[2:]
    if len(local) not in (10, 11):
        return [local]
    # A phone that is stored without its area, and one from before the ninth digit.
    return [local, f" {local[2:]} "]


def _has_digit(word: str) -> bool:
    return any("0" <= sign <= "9" for sign in word)


def _any(conditions: Iterable[str]) -> str:
    each = list(dict.fromkeys(one for one in conditions if one))
    return each[0] if len(each) == 1 else f"({' or '.join(each)})"


def _all(conditions: Iterable[str]) -> str:
    each = list(dict.fromkeys(one for one in conditions if one))
    return each[0] if len(each) == 1 else f"({' and '.join(each)})"

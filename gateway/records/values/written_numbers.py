"""Reads and writes numbers as people and spreadsheets write them, with a decimal comma or point.

`1.500` is 1500 in one form and 1.5 in the other; nothing here decides that without the form. What
can be read in one way only needs no form.
"""

import re
from decimal import Decimal

from gateway.records.values.formats import Wrong

AUTO = "auto"
COMMA = "1.234,56"
POINT = "1,234.56"
FORMS = (AUTO, COMMA, POINT)
"""The choices of a file: its cells and its separator decide, a decimal comma, a decimal point."""
MOST = 64
"""Characters of a number with its currency."""
NO_FORM, SHOWS_COMMA, SHOWS_POINT = 0, 1, 2
"""What a text alone tells of its form: the place of that in FORMS."""
# Thin, narrow, figure and no-break spaces; apostrophes; minus signs and hyphens of typography.
_SAME = str.maketrans(
    {
        **dict.fromkeys(
            "\t\u00a0\u2000\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f", " "
        ),
        **dict.fromkeys("\u2019\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
    }
)
_CURRENCY = r"(?:[A-Za-z]{0,3}[$€£¥₲]|[A-Z]{3}(?![A-Za-z])|reais|real)"
_WRITTEN = re.compile(
    rf"(?P<first>{_CURRENCY})?\s*(?P<open>\()?\s*(?P<sign>[-+])?\s*(?P<before>{_CURRENCY})?\s*(?P<inner>[-+])?\s*"
    rf"(?P<digits>[0-9.,](?:[0-9., ']*[0-9])?)\s*(?P<after>{_CURRENCY})?\s*(?P<end>-)?\s*"
    r"(?P<close>\))?",
    re.ASCII,
)
# What the accounting format of spreadsheets makes of zero.
_ZERO = re.compile(r"R\$\s*-", re.ASCII)
_OURS = frozenset(("R$", "$", "BRL", "REAIS", "REAL"))
_SPACED = r"[1-9][0-9]{0,2}(?P<gap>[ '])[0-9]{3}(?:(?P=gap)[0-9]{3})*"


def _form(group: str, point: str) -> re.Pattern[str]:
    whole = rf"[0-9]{{1,30}}|[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|{_SPACED}"
    return re.compile(rf"(?=.*[0-9])(?P<whole>{whole})?(?:{point}(?P<part>[0-9]{{1,30}}))?")


_PATTERNS = ((COMMA, _form(r"\.", ",")), (POINT, _form(",", r"\.")))
_NO_DIGIT = re.compile("[^0-9]")
_SHORTENED = re.compile(r"[-+]?[0-9]+(?:[.,][0-9]+)?[eE][-+]?[0-9]{1,3}", re.ASCII)


def read(text: str, form: str = AUTO) -> int | Decimal:
    """Return the number of a text in a form; by AUTO, only what can be read in one way.

    A text that has one reading is that number in any form. Raises Wrong.
    """
    number = _readings(text)
    if len(number) == 1:
        return next(iter(number.values()))
    if form in number:
        return number[form]
    raise Wrong(
        "ambiguous_number",
        "A point or comma before three digits can group thousands or begin decimals; say which "
        f"by numbers={COMMA} or numbers={POINT}.",
    )


def write(number: int | float | Decimal, form: str, places: int | None = None) -> str:
    """Return the text of a number, without groups, which `read` in this form gives back equal.

    With `places` it has so many decimals.
    """
    exact = number if isinstance(number, int | Decimal) else Decimal(repr(number))
    text = f"{Decimal(exact):f}" if places is None else f"{Decimal(exact):.{places}f}"
    return text.replace(".", ",") if form == COMMA else text


def shows(text: str) -> int:
    """Return what a text alone tells of the form of its file."""
    if len(text) > MOST or not ("." in text or "," in text):
        return NO_FORM
    try:
        readings = _readings(text)
    except Wrong:
        return NO_FORM
    if len(readings) != 1:
        return NO_FORM
    return {COMMA: SHOWS_COMMA, POINT: SHOWS_POINT}.get(next(iter(readings)), NO_FORM)


def is_shortened(text: str) -> bool:
    """Return whether a spreadsheet has replaced a long number by a power of ten: 7,89E+12."""
    return _SHORTENED.fullmatch(text) is not None


def shortened() -> Wrong:
    """Return the error of such a text, whose digits are lost."""
    return Wrong(
        "shortened",
        "Excel has shortened this number, so its digits are lost; format the column as text or as "
        "a whole number, type it again, and save the file.",
    )


def _readings(text: str) -> dict[str, int | Decimal]:
    """Return the readings of a text by form; one alone, under AUTO when both forms agree."""
    text = text.translate(_SAME).strip()
    match = _WRITTEN.fullmatch(text) if len(text) <= MOST else None
    if match is None and _ZERO.fullmatch(text):
        return {AUTO: 0}
    if match is None:
        raise shortened() if is_shortened(text) else _wrong()
    signs = [match[name] for name in ("sign", "inner", "end") if match[name]]
    if len(signs) + bool(match["open"]) > 1 or bool(match["open"]) != bool(match["close"]):
        raise _wrong()
    currencies = [match[name] for name in ("first", "before", "after") if match[name]]
    if len(currencies) > 1:
        raise _wrong()
    minus = "-" if match["open"] or "-" in signs else ""
    readings: dict[str, int | Decimal] = {}
    for form, pattern in _PATTERNS:
        if digits := pattern.fullmatch(match["digits"]):
            whole = _NO_DIGIT.sub("", digits["whole"] or "0")
            part = digits["part"]
            readings[form] = (
                int(minus + whole) if part is None else Decimal(f"{minus}{whole}.{part}")
            )
    if not readings:
        raise _wrong()
    if currencies and currencies[0].upper() not in _OURS:
        raise Wrong(
            "other_currency",
            "The amount is in another currency, and Carteiro stores BRL; convert it, or delete the "
            "currency.",
        )
    if len(readings) == 2 and len(set(readings.values())) == 1:
        return {AUTO: readings[COMMA]}
    return readings


def _wrong() -> Wrong:
    return Wrong("wrong_number", "Write a number, such as 1234.50 or 1.234,50.")

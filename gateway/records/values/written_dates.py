"""Reads dates and times as people and spreadsheets write them: 31/12/2026 14:30, 12/31/2026, ISO.

`03/04/2026` is a day of April in one form and of March in the other; nothing here decides that
without the form. What can be read in one way only needs no form.
"""

import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gateway.records.values import dates
from gateway.records.values.formats import Wrong
from outbox.durations import SECOND

AUTO = "auto"
DAY_FIRST = "dd/mm/yyyy"
MONTH_FIRST = "mm/dd/yyyy"
FORMS = (AUTO, DAY_FIRST, MONTH_FIRST)
"""The choices of a file: its cells and its separator decide, the day first, the month first."""
NO_FORM, SHOWS_DAY, SHOWS_MONTH = 0, 1, 2
"""What a text alone tells of its form: the place of that in FORMS."""
CENTURY = 70
"""Years of two digits below it are of this century."""
_TIME = (
    r"(?:(?:,? +(?:às |as |at |- )?|[Tt])(?P<hour>[0-9]{1,2})[:h](?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]{1,12}))?)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?"
)
_WRITTEN = re.compile(
    rf"(?P<a>[0-9]{{1,2}})(?P<gap>[/.-])(?P<b>[0-9]{{1,2}})(?P=gap)(?P<year>[0-9]{{4}}|[0-9]{{2}})"
    rf"{_TIME}",
    re.ASCII,
)
_YEAR_FIRST = re.compile(
    rf"(?P<year>[0-9]{{4}})(?P<gap>[/.-])(?P<month>[0-9]{{1,2}})(?P=gap)(?P<day>[0-9]{{1,2}}){_TIME}",
    re.ASCII,
)
_LONGEST = 40
_MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "jan janeiro january", "fev fevereiro feb february", "mar março marco march",
            "abr abril apr april", "mai maio may", "jun junho june", "jul julho july",
            "ago agosto aug august", "set setembro sep sept september", "out outubro oct october",
            "nov novembro november", "dez dezembro dec december",
        ),
        1,
    )
    for word in words.split()
}  # fmt: skip
_DAY_MONTH = re.compile(r"([0-9]{1,2})(?: de |[ /.-]+)([^\W\d_]{3,9})\.?(?: de |,?[ /.-]+)([0-9]+)")
_MONTH_DAY = re.compile(r"([^\W\d_]{3,9})\.? ([0-9]{1,2}),? ([0-9]+)")


def read(text: str, form: str = AUTO, zone: str = "UTC") -> str:
    """Return ISO 8601 of a text: a bare date, or a time in UTC. Raises Wrong.

    A time without an offset is in the time zone `zone`. A text that has one reading is that date in
    any form.
    """
    text = _in_digits(" ".join(text.split()))
    fields = _fields(text)
    if fields is None:
        # With an offset, or nothing that is a date, which its format refuses.
        return text
    readings, time = fields
    if form not in readings and len(readings) > 1:
        raise Wrong(
            "ambiguous_date",
            "This can be two dates; say which number is the day by dates=dd/mm/yyyy or "
            "dates=mm/dd/yyyy.",
        )
    hour, minute, second, part = time or (0, 0, 0, 0)
    year, month, day = readings[form] if form in readings else next(iter(readings.values()))
    try:
        local = datetime(
            year, month, day, hour, minute, second, microsecond=part, tzinfo=ZoneInfo(zone)
        )
    except ValueError:
        raise _wrong() from None
    if time is None:
        return local.date().isoformat()
    try:
        micros = _micros(local.astimezone(UTC))
    except OverflowError:
        raise _wrong() from None
    return dates.show(micros)


def shows(text: str) -> int:
    """Return what a text alone tells of the form of its file."""
    if len(text) > _LONGEST or not text[:1].isdigit():
        return NO_FORM
    match = _WRITTEN.fullmatch(text)
    if match is None or match["gap"] == ".":
        # Where dates have points, the day is first, and dates with slashes are rare.
        return NO_FORM
    a, b = int(match["a"]), int(match["b"])
    if a > 12 >= b:
        return SHOWS_DAY
    return SHOWS_MONTH if b > 12 >= a else NO_FORM


def _in_digits(text: str) -> str:
    """Return a text whose month is a word, as `10-Mar-26`, in digits; any other as it is."""
    if match := _DAY_MONTH.match(text):
        day, word, year = match.groups()
    elif match := _MONTH_DAY.match(text):
        word, day, year = match.groups()
    else:
        return text
    month = _MONTHS.get(word.lower())
    return text if month is None else f"{day}.{month}.{year}{text[match.end() :]}"


def _fields(
    text: str,
) -> tuple[dict[str, tuple[int, int, int]], tuple[int, int, int, int] | None] | None:
    """Return year, month and day by form, one alone if they agree, and the time; None for ISO."""
    match = _WRITTEN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        match = _YEAR_FIRST.fullmatch(text)
        if match is None:
            return None
        day = (int(match["year"]), int(match["month"]), int(match["day"]))
        return {AUTO: day}, _time(match)
    a, b, year = int(match["a"]), int(match["b"]), int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < CENTURY else 1900
    if a == b or b > 12 or match["gap"] == "." or a > 12:
        # The other reading has no such month.
        month_first = b > 12 and a <= 12 and match["gap"] != "."
        return {AUTO: (year, a, b) if month_first else (year, b, a)}, _time(match)
    return {DAY_FIRST: (year, b, a), MONTH_FIRST: (year, a, b)}, _time(match)


def _time(match: re.Match[str]) -> tuple[int, int, int, int] | None:
    if match["hour"] is None:
        return None
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise _wrong()
        hour = hour % 12 + (12 if match["half"] in "Pp" else 0)
    part = int(f"{match['part'] or '':0<6.6}")
    return hour, int(match["minute"]), int(match["second"] or 0), part


def _micros(at: datetime) -> int:
    whole = at.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)
    return (whole.days * 86_400 + whole.seconds) * SECOND + at.microsecond


def _wrong() -> Wrong:
    return Wrong("invalid_date", "Write a date or a time, such as 2026-12-31 or 31/12/2026 14:30.")

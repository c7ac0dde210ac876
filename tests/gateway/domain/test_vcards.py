"""How a vCard file is read in pieces: the same cells at every cut, and the limits of a card."""

from __future__ import annotations

import json

import pytest

from gateway.domain.import_lines import Line
from gateway.domain.imports import cards
from gateway.domain.imports.cards import CardFile
from gateway.domain.imports.vcards import HEADINGS
from gateway.records.errors import Refusal
from gateway.records.values.csv_cells import plain


def cards_of(data: bytes, size: int = 1 << 16) -> list[Line]:
    file = CardFile()
    lines: list[Line] = []
    for place in range(0, len(data), size):
        lines += file.feed(data[place : place + size])
    return [*lines, *file.end()]


def card(*lines: str, version: str = "3.0") -> bytes:
    return "\r\n".join(("BEGIN:VCARD", f"VERSION:{version}", *lines, "END:VCARD", "")).encode()


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (card("FN:Ana", "  Lima", "EMAIL;type=HOME:b@x.com", "EMAIL;TYPE=pref:a@x.com"),
         {"name": "Ana Lima", "email": "a@x.com", "notes": "EMAIL (home): b@x.com"}),
        (card("N:Silva\\, Jr;João;Luiz,Zé;Sr.;", "NOTE:a\\nb\\, c\\; d"),
         {"name": "Sr. João Luiz Zé Silva, Jr", "notes": "a\nb, c; d"}),
        (card("FN:", "N:;;;;", "ORG:Loja;Caixa"),
         {"name": "Loja", "company": "Loja", "notes": "ORG: Caixa"}),
        (card("N;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:=C1vila;In=EAs",
              "TEL;WORK;FAX:1133", "TEL;CELL:11 98888-7777", version="2.1"),
         {"name": "Inês Ávila", "phone": "11 98888-7777", "notes": "TEL (fax work): 1133"}),
        (card("FN;encoding=quoted-printable:Lu=C3=\r\n=ADs", version="2.1"), {"name": "Luís"}),
        (card('TEL;VALUE=uri;TYPE="voice,cell":tel:+55-11-98888-7777;ext=5', "FN:X", version="4.0"),
         {"name": "X", "phone": "+55-11-98888-7777 x5"}),
        (card("FN:X", "item1.TEL:1", "item1.X-ABLabel:_$!<HomeFax>!$_", "item2.URL:x.com",
              "item2.X-ABLabel:Blog"),
         {"name": "X", "phone": "1", "notes": "URL (Blog): x.com"}),
        (card("FN:X", "PHOTO;ENCODING=b:AAAA", " BBBB", "", "TITLE:Boss", "CATEGORIES:a,b\\,c"),
         {"name": "X", "position": "Boss", "tags": ["a", "b,c"]}),
        (card("FN:X", "AGENT:", "BEGIN:VCARD", "FN:Y", "END:VCARD", "TITLE:T"),
         {"name": "X", "position": "T"}),
        # A line whose head is none is left out; its expression would take an exponential time.
        (card("FN:X", "A" + ";B" * 2_000 + "=", "no colon"), {"name": "X"}),
        (card("FN:José").decode().encode("cp1252"), {"name": "José"}),
        (b"\xef\xbb\xbf" + card("FN:X").replace(b"\r\n", b"\n"), {"name": "X"}),
        (card("FN;CHARSET=of no use:X", "TITLE;ENCODING=8BIT;CHARSET=idna;ENCODING=8BIT:T"),
         {"name": "X", "position": "T"}),
        (card("FN:=1+1", "TEL:+55 11 3333-4444"), {"name": "=1+1", "phone": "+55 11 3333-4444"}),
    ],
)  # fmt: skip
def test_a_card_becomes_a_line(data: bytes, expected: dict[str, object], size: int) -> None:
    [(line, cells)] = cards_of(data, size)
    found: dict[str, object] = {
        heading: plain(cell) for heading, cell in zip(HEADINGS, cells, strict=True) if cell
    }
    if "tags" in found:
        found["tags"] = json.loads(str(found["tags"]))
    assert (line, found) == (1, expected)


def test_groups_are_no_persons_and_lines_are_those_of_the_cards() -> None:
    data = card("FN:A") + b"\r\n" + card("KIND:group", "FN:G", version="4.0") + card("FN:B")
    assert [(line, cells[0]) for line, cells in cards_of(data)] == [(1, "A"), (11, "B")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "line", "code", "said"),
    [
        (card("FN:X", "PHOTO:" + "A" * 10_000_000), 4, "too_long", "4,194,304"),
        (card("FN:X", "PHOTO:A", *(" " + "A" * 74 for _ in range(60_000))), 55928, "too_long",
         "photo"),
        (card("NOTE:" + "A" * 5_000_000), 1, "too_long", "262,144"),
        (card("FN:X", *(f"TEL:{n}" for n in range(40_000))), 1, "too_long", "262,144"),
        (card("MEMBER:x", *["N:;;"] * 1_001), 1004, "too_many", "1,000"),
        (card("FN:X").replace(b"END:VCARD", b""), 1, "not_closed", "END:VCARD"),
        (card("FN:X") + b"name,email\n", 5, "invalid_file", "BEGIN:VCARD"),
        (card("KIND:group"), 1, "empty", "no card"),
        (card("FN;CHARSET=x;ENCODING=QUOTED-PRINTABLE:=FF"), 3, "invalid_encoding", "encoding"),
        (card("FN:X\0"), 3, "invalid_characters", "NUL"),
        (card("BEGIN:A", "BEGIN:B", "BEGIN:C", "BEGIN:D", "BEGIN:E", "BEGIN:F"), 8, "invalid_file",
         "deep"),
    ],
)  # fmt: skip
def test_a_card_that_is_refused_names_its_limit(
    data: bytes, line: int, code: str, said: str
) -> None:
    with pytest.raises(Refusal, match=said) as refused:
        cards_of(data)
    [fault] = refused.value.faults
    assert (fault.field, fault.code) == (f"line {line}", code)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NOTE;ENCODING=QUOTED-PRINTABLE;ENCODING=8BIT:x=20y", "invalid_encoding"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE;ENCODING=QUOTED-PRINTABLE:x=20y", "invalid_encoding"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE,8BIT:x=20y", "invalid_encoding"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE:Jo=00ao", "invalid_characters"),
        ("TEL;QUOTED-PRINTABLE:=\r\n=00", "invalid_characters"),
        ("NOTE;CHARSET=UTF-16LE;QUOTED-PRINTABLE:J=00=00=00", "invalid_characters"),
        ("NOTE;CHARSET=UTF-7;ENCODING=QUOTED-PRINTABLE:+AAA-x", "invalid_characters"),
        ("NOTE;CHARSET=UTF-7;ENCODING=QUOTED-PRINTABLE:+2AA-x", "invalid_encoding"),
        ("NOTE;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=ED=A0=80", "invalid_encoding"),
        ("NOTE;CHARSET=x;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:a", "invalid_encoding"),
        ("NOTE;CHARSET=ROT13;ENCODING=QUOTED-PRINTABLE:a", "invalid_encoding"),
        # No charsets of files; the time of some grows with the square of the length.
        (r"NOTE;CHARSET=unicode-escape;ENCODING=QUOTED-PRINTABLE:a\x00", "invalid_encoding"),
        (r"NOTE;CHARSET=raw_unicode_escape;QUOTED-PRINTABLE:\u0041", "invalid_encoding"),
        ("NOTE;CHARSET=idna;ENCODING=QUOTED-PRINTABLE:a", "invalid_encoding"),
        ('NOTE;CHARSET="Punycode";QUOTED-PRINTABLE:a', "invalid_encoding"),
        ('NOTE;CHARSET=,"",Punycode;QUOTED-PRINTABLE:a', "invalid_encoding"),
    ],
)
def test_a_value_that_is_no_text_is_refused_with_its_line(text: str, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        cards_of(card("FN:X", text, "TEL:1", version="2.1"))
    [fault] = refused.value.faults
    assert (fault.field, fault.code) == ("line 4", code)


def test_a_file_has_a_bound_of_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MOST_LINES", 2)
    with pytest.raises(Refusal, match="at most 2 cards"):
        cards_of(card("FN:X") * 3)

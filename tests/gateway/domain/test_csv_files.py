"""How a CSV file is read in pieces: every cut gives the same lines, every fault names its line."""

from __future__ import annotations

import pytest

from gateway.domain.import_lines import Line
from gateway.domain.imports import files
from gateway.domain.imports.files import CsvFile
from gateway.records.errors import Refusal

WHOLE = 'id;"na;me"\r\n1;"a ""b""\r\nc";\n\n2;5" pipe\r3;"","x;\n"\n4'.replace(
    '"","x;\n"', '"x;\n"'
)


def lines_of(data: bytes, size: int = 1 << 20, charset: str = "") -> tuple[CsvFile, list[Line]]:
    file = CsvFile(charset)
    lines: list[Line] = []
    for place in range(0, len(data), size):
        lines += file.feed(data[place : place + size])
    return file, lines + file.end()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
def test_every_cut_gives_the_same_lines(size: int) -> None:
    file, lines = lines_of(WHOLE.encode(), size)
    assert file.headings == ["id", "na;me"]
    assert lines == [
        (2, ["1", 'a "b"\r\nc', ""]), (5, ["2", '5" pipe']), (6, ["3", "x;\n"]), (8, ["4"]),
    ]  # fmt: skip
    assert (file.lines, file.encoding) == (4, "utf-8")


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        ("name,e\nJosé,1\n".encode(), "utf-8"),
        ("\ufeffname,e\nJosé,1\n".encode(), "utf-8"),
        ("sep=,\r\nname,e\r\nJosé,1".encode(), "utf-8"),
        ("name;e\nJosé;1".encode("cp1252"), "windows-1252"),
        ("name\te\rJosé\t1\r".encode("cp1252"), "windows-1252"),
    ],
)
def test_encodings_and_separators_are_found(data: bytes, encoding: str, size: int) -> None:
    file, [(_, cells)] = lines_of(data, size)
    assert (file.headings, cells, file.encoding) == (["name", "e"], ["José", "1"], encoding)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize(
    ("text", "headings", "lines"),
    [
        ("\n \n\u200b\u00a0\n;;\nname;email\nAna;a@x\n; \n", ["name", "email"],
         [(6, ["Ana", "a@x"])]),
        ('"Obs\n(livre)";name;email\nx;Ana;a@x\n', ["Obs\n(livre)", "name", "email"],
         [(3, ["x", "Ana", "a@x"])]),
        ("name;Observações (livres, curtas)\nAna;doce, café, chá\nBia;\n",
         ["name", "Observações (livres, curtas)"],
         [(2, ["Ana", "doce, café, chá"]), (3, ["Bia", ""])]),
        # A tie goes to the character that texts have more rarely.
        ("preço, com desconto;peso\n1,50;3\n", ["preço, com desconto", "peso"],
         [(2, ["1,50", "3"])]),
        ("name,notes (a; b)\nAna,x\nBia,y;z\n", ["name", "notes (a; b)"],
         [(2, ["Ana", "x"]), (3, ["Bia", "y;z"])]),
        ("SKU (vazio, se novo);Nome (100 letras, no máximo);Fotos (URLs, com vírgulas)\n1;Chá;x\n",
         ["SKU (vazio, se novo)", "Nome (100 letras, no máximo)", "Fotos (URLs, com vírgulas)"],
         [(2, ["1", "Chá", "x"])]),
        ("nome|preço\nChá|1,5\n", ["nome", "preço"], [(2, ["Chá", "1,5"])]),
        ("sep=|\r\nname|a,b\r\nx|y\r\n", ["name", "a,b"], [(3, ["x", "y"])]),
        ("nome;e-mail, pessoal;fone\nAna\nBia;b@x\nCaio;;1\nDora\n",
         ["nome", "e-mail, pessoal", "fone"],
         [(2, ["Ana"]), (3, ["Bia", "b@x"]), (4, ["Caio", "", "1"]), (5, ["Dora"])]),
        ("e-mail\na@x\nb@x, casa\nc@x", ["e-mail"],
         [(2, ["a@x"]), (3, ["b@x, casa"]), (4, ["c@x"])]),
        ("name\nAna,1\nBia,2\n", ["name"], [(2, ["Ana", "1"]), (3, ["Bia", "2"])]),
        ("\ufeff name \u00a0,\u200bemail\nAna,a@x\n", ["name", "email"], [(2, ["Ana", "a@x"])]),
    ],
)  # fmt: skip
def test_whole_records_tell_the_separator(
    text: str, headings: list[str], lines: list[Line], size: int
) -> None:
    file, found = lines_of(text.encode(), size)
    assert (file.headings, found) == (headings, lines)


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize(
    ("data", "line", "code"),
    [
        (b"", 1, "empty"),
        (b"\n\n", 1, "empty"),
        (b"name\n", 2, "empty"),
        (b"name\n\n", 2, "empty"),
        (b'name\nx\n"open\nmore\n', 3, "invalid_quotes"),
        (b'name\nx\n"a"b\n', 3, "invalid_quotes"),
        (b"name\nx\ny\0\n", 3, "invalid_characters"),
        (",".join(f"c{n}" for n in range(1000)).encode() + b"\n1\n", 1, "too_many"),
        (b"name\nx\n" + b"y" * 140_000 + b"\n", 3, "too_long"),
        (b"name," + b"y" * 201 + b"\nx,z\n", 1, "too_long"),
        ("name\né\n".encode() + b"\xff\n", 3, "invalid_encoding"),
        (b"name\nx\n\x81\n", 3, "invalid_encoding"),
        ("name\nx\n".encode("utf-16"), 1, "invalid_file"),
        (b"PK\x03\x04xlsx", 1, "invalid_file"),
        (b"\x1f\x8b\x08\x00", 1, "invalid_file"),
    ],
)
def test_a_fault_names_its_line(data: bytes, line: int, code: str, size: int) -> None:
    if len(data) > 10_000 and size == 1:
        size = 999
    with pytest.raises(Refusal) as refused:
        lines_of(data, size)
    [fault] = refused.value.faults
    assert (fault.field, fault.code) == (f"line {line}", code)


def test_what_would_fill_the_memory_or_take_long_is_refused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "SAMPLE", 4)
    monkeypatch.setattr(files, "MOST_LINES", 200)
    monkeypatch.setattr(files, "MOST_BLANK", 1_000)
    file = CsvFile()
    file.feed(b'name\n"')
    with pytest.raises(Refusal, match="line 2"):
        file.feed(b'x","' * 100_000)
    file = CsvFile()
    file.feed(b"name\n" + b"x\n" * 200)
    with pytest.raises(Refusal, match="at most 200 lines"):
        file.feed(b"x\n\n")
    file = CsvFile()
    file.feed(b"name\n" + b"\n" * 1_000)
    with pytest.raises(Refusal, match="1,000 empty lines"):
        file.feed(b"\n\n")

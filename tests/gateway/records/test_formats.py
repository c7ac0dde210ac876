"""Tests that each format's check agrees with its JSON Schema."""

import json
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import jsonschema_rs
import phonenumbers
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.records.values import cnpj, dates, formats, hostnames, instants, nested, numbers
from gateway.records.values.folding import BYTES, fold, without_case
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.nested import Member
from gateway.records.values.strictjson import decode


def code(check: Format, value: Any) -> str:
    """Return the fault's code, or "" when the value is accepted."""
    try:
        check.accept(value)
    except Wrong as wrong:
        return wrong.code if wrong.message.endswith(".") else f"no sentence: {wrong.message}"
    return ""


GOOD: list[tuple[Format, list[Any]]] = [
    (formats.title(), ["x", "João 😀", "x" * 200, " a ", "-", "\u200bx", "é" * 200]),
    (formats.text(5), ["", " ", "12345", "\n\t", "😀" * 5]),
    (
        formats.email(),
        ["a@b.co", "maria.silva+tag@mail.example.com", "o'neil@x-y.com", "josé@exämple.com",
         "a" * 64 + "@example.com", "1@2.com", "!#$%&'*+/=?^_`{|}~-@example.org"],
    ),
    (
        hostnames.hostname(),
        ["localhost", "Shop.Example.com.", "loja.example:8443", " bücher.example ", "日本。jp",
         "-ı9z.example", "１２３.example", "a\u00adb.example", "лавка.рф"],
    ),
    (
        hostnames.origin(),
        ["https://shop.example.com", "HTTP://localhost:3000", "https://bücher.example:443"],
    ),
    (formats.phone(), ["123", "(11) 98888-7777", "+55 11 98888.7777 x12", "0" * 40]),
    (
        formats.website(),
        ["example.com", "http://example.com", "HTTPS://Example.com:8443/a/b?c=d#e", "a.b.c",
         "http://localhost", "http://127.0.0.1:80", "exämple.com", "x.com/ção", "http://a?b",
         "a.com:1", "a.com:9999/x", "a.com:59999", "http://a:60000", "a.com:64999", "a.com:65535"],
    ),
    (
        cnpj.cnpj(),
        ["11222333000181", "11.222.333/0001-81", "12.ABC.345/01DE-35", "12abc34501de35",
         "00000000000191", "12.abc.345/01de-35"],
    ),
    (formats.boolean(), [True, False]),
    (numbers.integer(0, 100), [0, 100, 5, Decimal("5.0"), Decimal("1e2")]),
    (numbers.money(), [0, 1, Decimal("0.01"), Decimal("999999999999.99"), Decimal("1.10"), 10]),
    (
        instants.instant(),
        ["2026-11-21", "2026-11-21T14:30:00Z", "2026-11-21T14:30:00.123456-03:00",
         "2026-11-21T14:30:00", "2024-02-29", "2026-11-21 14:30:00Z", "2026-11-21t14:30:00z",
         "2016-12-31T23:59:60Z", "2026-11-21T14:30+0530"],
    ),
    (formats.one_of("low", "high"), ["low", "high"]),
    (formats.id_of("deal"), ["0" * 24, "ABCDEF0123456789abcdef00"]),
    (formats.ids_of("deal", 2), [[], ["0" * 24], ["0" * 24, "1" * 24]]),
    (formats.tags(), [[], ["a"], [str(i) for i in range(50)]]),
    (nested.free_object(), [{}, {"a": [{"b": None}]}, {"n": 10**30}, {"é": "x" * 16_000}]),
]  # fmt: skip

BAD: list[tuple[Format, str, list[Any]]] = [
    (formats.title(), "wrong_type", [1, None, ["x"], True]),
    (formats.title(), "blank", [" ", "\u200b", "\u3164", "\t\n", "\u2800\u00a0", "\ufeff"]),
    (formats.title(), "too_short", [""]),
    (formats.title(), "too_long", ["x" * 201]),
    (formats.text(5), "invalid_characters", ["\0", "a\0b", "\ud800"]),
    (
        formats.email(), "invalid_email",
        ["", "a", "a@b", "@b.co", "a@", "a b@c.de", "a@b..co", "a@-b.co", "a@b-.co", ".a@b.co",
         "a.@b.co", "a..b@c.de", "a@b.co\n", "a@b@c.de", "a" * 65 + "@b.co", "a@[1.2.3.4]",
         '"a b"@c.de', "a@b.c,d", "a@" + "x" * 64 + ".com", "<a@b.co>"],
    ),
    (formats.email(), "too_long", ["a@" + "b." * 130 + "co"]),
    (formats.phone(), "invalid_phone", ["", "12", "abc", "123\n", "１２３４", "12#34"]),
    (formats.phone(), "too_long", ["1" * 41]),
    (
        formats.website(), "invalid_website",
        ["", "localhost", "ftp://example.com", "javascript:alert(1)", "http://", "http:// a.com",
         "http://a.com/ b", "//a.com", "http://user@a.com", "example.com\n", "a_b.com",
         "a.com:0", "a.com:00", "a.com:65536", "http://a.com:65540/", "http://a.com:70000",
         "http://a.com:99999/x", "a.com:100000", "a.com:", "a.com:x", "a.com:-1"],
    ),
    (
        cnpj.cnpj(), "invalid_cnpj",
        ["", "11222333000182", "11.222.333/0001-8", "00000000000000", "1122233300018",
         "112223330001811", "١١٢٢٢٣٣٣٠٠٠١٨١", "12ABC34501DE36", "12ABC34501DEXX",
         "11111111111111", "１１222333000181"],
    ),
    (formats.boolean(), "wrong_type", [0, 1, "true", None]),
    (numbers.integer(0, 100), "wrong_type", ["5", True, Decimal("5.5"), None, [1]]),
    (numbers.integer(0, 100), "out_of_range", [-1, 101, 10**400, Decimal("1e300")]),
    (numbers.money(), "wrong_type", [True, "1.00", None]),
    (numbers.money(), "out_of_range", [-1, Decimal("-0.01"), 10**12, Decimal("1e300")]),
    (
        numbers.money(), "too_precise",
        [Decimal("0.001"), Decimal("1.999"), Decimal("999999999999.98999999999999999999"),
         Decimal("1.0000000000000000000000000000000000001"), Decimal("1e-400")],
    ),
    (
        instants.instant(), "invalid_date",
        ["", "2026", "2026-13-01", "2026-02-30", "2025-02-29", "2026-11-21T25:00:00Z",
         "2026-11-21T14:60:00Z", "2026-11-21T14:30:61Z", "21/11/2026", "2026-11-21T14:30:00+25:00",
         "2026-11-21T14:30:00+10:99", "0000-01-01", "0001-01-01T00:00:00+10:00", "２０２６-11-21",
         "9999-12-31T23:59:59-01:00", "2026-W01-1", "20261121", "2026-11-21\n", "1700000000"],
    ),
    (instants.instant(), "wrong_type", [1700000000, None]),
    (formats.one_of("low", "high"), "not_allowed", ["", "Low", "mid", 1, None, ["low"], {}]),
    (formats.id_of("deal"), "invalid_reference", ["", "x" * 24, "0" * 23, "０" * 24]),
    (formats.ids_of("deal", 2), "too_many", [["0" * 24, "1" * 24, "2" * 24]]),
    (formats.tags(), "too_many", [[str(i) for i in range(51)], ["a"] * 51]),
    (formats.tags(), "wrong_type", ["a", {"a": 1}, [1], None]),
    (formats.tags(), "too_long", [["x" * 65]]),
    (formats.tags(), "blank", [[" "]]),
    (nested.free_object(), "wrong_type", [[], "x", None]),
    (nested.free_object(), "too_deep", [{"a": [[[[[[[[1]]]]]]]]}]),
    (nested.free_object(), "too_long", [{"a": "x" * 16_384}]),
]  # fmt: skip


@pytest.mark.parametrize(("check", "values"), GOOD)
def test_valid_values_are_accepted_and_match_the_schema(check: Format, values: list[Any]) -> None:
    # 0.01 has no exact double, and validators treat it differently.
    schema = {name: rule for name, rule in check.schema.items() if name != "multipleOf"}
    validator = jsonschema_rs.validator_for(schema)
    for value in values:
        assert code(check, value) == "", value
        validator.validate(json.loads(json.dumps(value, default=float)))


@pytest.mark.parametrize(("check", "expected", "values"), BAD)
def test_invalid_values_are_refused_with_a_code(
    check: Format, expected: str, values: list[Any]
) -> None:
    for value in values:
        assert code(check, value) == expected, value


def test_all_faults_of_a_list_are_reported_with_their_places() -> None:
    with pytest.raises(Wrong) as caught:
        formats.tags().accept(["ok", 1, "fine", " "])
    found = [(w.at, w.code) for w in (caught.value, *caught.value.more)]
    assert found == [("[1]", "wrong_type"), ("[3]", "blank")]


def test_a_long_list_reports_only_the_first_faults() -> None:
    with pytest.raises(Wrong) as caught:
        formats.ids_of("deal", 100_000).accept([0] * 100_000)
    assert len(caught.value.more) == 19


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("(11) 98888-7777", "+5511988887777"),
        ("11 3333-4444", "+551133334444"),
        ("+1 212 555 0100", "+12125550100"),
        ("+44 20 7946 0958", "+442079460958"),
        ("0800 123 4567", "+558001234567"),
        ("(55) 3333-4444", "+555533334444"),
        ("3333-4444", None),
        ("98888-7777", None),
        ("(11) 1333-4444", None),
        ("(20) 3333-4444", None),
        ("+1 555 0100", None),
        ("123", None),
        ("---", None),
        ("+999 1", None),
    ],
)
def test_e164(sent: str, stored: str | None) -> None:
    assert formats.e164(sent) == stored


def library_e164(sent: str) -> str | None:
    try:
        number = phonenumbers.parse(sent, "BR")
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


@pytest.mark.slow
@given(
    st.from_regex(r"(?:\+?55|\+1|0)? ?\(?[0-9]{2}\)? ?[0-9]{3,5}[-. ]?[0-9]{4}", fullmatch=True)
    | st.text("0123456789+()-. x", max_size=40)
)
def test_e164_is_what_the_library_finds(sent: str) -> None:
    assert formats.e164(sent) == library_e164(sent)


@pytest.mark.slow
@given(st.integers(0, 99_999_999_999_999))
def test_money_is_exact_both_ways(centavos: int) -> None:
    money = numbers.money()
    assert money.show is not None
    shown = money.show(centavos)
    assert money.accept(decode(json.dumps(shown).encode())) == centavos
    assert money.accept(shown) == centavos
    exact = Decimal(centavos).scaleb(-2)
    assert money.accept(exact) == centavos


@pytest.mark.slow
@given(
    st.from_regex(
        r"(?:000[01]|1970|2024|9999)-[01][0-9]-[0-3][0-9]"
        r"(?:[Tt ](?:[01][0-9]|2[0-35-9]):[0-6][0-9](?::[0-6][0-9](?:[.,][0-9]{1,9})?)?"
        r"(?:[Zz]|[+-][0-2][0-9]:?[0-5][0-9])?)?",
        fullmatch=True,
    )
)
def test_an_instant_is_what_the_standard_library_reads(text: str) -> None:
    # The library knows no leap second, and an offset may lead out of the years 1 to 9999.
    assume(":60" not in text)
    try:
        moment = datetime.fromisoformat(text.upper().replace(",", "."))
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        micros: int | None = (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except ValueError:
        micros = None
    if micros is not None and not dates.FIRST <= micros <= dates.LAST:
        micros = None
    assert dates.parse(text) == micros


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("2026-11-21", "2026-11-21T00:00:00.000Z"),
        ("2026-11-21T14:30:00-03:00", "2026-11-21T17:30:00.000Z"),
        ("2026-11-21T14:30:00.9999999Z", "2026-11-21T14:30:00.999Z"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
    ],
)
def test_dates_are_shown_in_utc(sent: str, shown: str) -> None:
    micros = dates.parse(sent)
    assert micros is not None
    assert dates.show(micros) == shown
    assert dates.is_day(sent) == (sent == "2026-11-21")


@pytest.mark.slow
@given(st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", min_size=12, max_size=12))
def test_exactly_one_pair_of_check_digits_is_valid(base: str) -> None:
    right = [d for d in range(100) if cnpj.normal(f"{base}{d:02d}") is not None]
    assert len(right) == (0 if base == "0" * 12 else 1)


LETTERS = "aZçÃéñÖøß ǅﬁİıΣς\u0300\u0301\u0345\u20dd한½①Ａ"


@pytest.mark.slow
@given(st.text(max_size=50) | st.text(LETTERS, max_size=20))
def test_every_text_is_folded_by_the_definition(text: str) -> None:
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    plain = "".join(c for c in spread if unicodedata.category(c)[0] != "M")
    assert without_case(text) == plain
    assert fold(fold(text)) == fold(text)
    # Letters and signs of phonetic alphabets, quotes and hyphens become ASCII as far as there is
    # such a form.
    assert _foreign(fold(text)) == _foreign(plain)


def _foreign(text: str) -> str:
    signs = (c for c in text if not (c.isascii() or "\u2010" <= c <= "\u203a"))
    names = ((c, unicodedata.name(c, "")) for c in signs)
    return "".join(c for c, name in names if not name.startswith(("LATIN ", "MODIFIER ")))


def test_folding_drops_case_and_accents() -> None:
    assert fold("José ÁÉÍÕÇ Straße") == "jose aeioc strasse"
    assert fold("ﬁn") == "fin"
    assert fold("Łódź Øyvind Đặng Æsir Œuvre ẞ Þór") == "lodz oyvind dang aesir oeuvre ss thor"
    assert fold("L’Oréal d‘água A–B") == "l'oreal d'agua a-b"
    assert (fold("Чай"), fold("東京")) == ("чаи", "東京")
    assert fold("Cafe\u0301") == fold("CAFÉ")
    assert len(fold("é" * 5000).encode()) == 1000
    assert fold("日" * 400) == "日" * 333
    # Sorting a run of marks takes quadratic time, so a long text is cut before.
    assert fold("a" + "\u0301" * BYTES + "b") == "a"


def test_members_of_objects_are_shown_unchanged() -> None:
    inner = nested.object_of((Member("price", numbers.money(), "Price."),))
    found = nested.objects(
        (
            Member("price", numbers.money(), "Price.", required=True),
            Member("quantity", numbers.quantity(), "How much."),
            Member("at", instants.instant(), "When."),
            Member("name", formats.text(9), "Name."),
            Member("inner", inner, "More."),
        ),
        3,
    )
    assert found.show is not None
    sent = [{"price": 10.5, "quantity": 1.5, "name": "x", "inner": {"price": 2}}, {"price": 3}]
    assert found.show(found.accept(sent)) == sent
    [dated] = found.show(found.accept([{"price": 1, "at": "2026-11-21"}]))
    assert dated == {"price": 1, "at": "2026-11-21T00:00:00.000Z"}
    assert jsonschema_rs.is_valid(dict(found.shown or {}), sent)

"""Pix codes: the check sum, the fields, and what cannot be written."""

import re
from decimal import Decimal

import pixcanvas
import pytest
from pixcanvas.core.emv import decode_template, decode_tlv

from gateway.domain.sales import pix

# The example of the Banco Central's "Manual de Padrões para Iniciação do Pix".
MANUAL = (
    "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR"
    "5913Fulano de Tal6008BRASILIA62070503***63041D3D"
)
KEY = "123e4567-e12b-12d1-a456-426655440000"


def fields(text: str) -> dict[str, str]:
    """Parse `id length value …`, as a bank does."""
    found = {}
    while text:
        number, length = text[:2], int(text[2:4])
        found[number], text = text[4 : 4 + length], text[4 + length :]
        assert len(found[number]) == length
    return found


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        # The check value of CRC-16/CCITT-FALSE (IBM 3740).
        (b"123456789", 0x29B1), (b"", 0xFFFF), (b"A", 0xB915),
        (MANUAL[:-4].encode(), int(MANUAL[-4:], 16)),
    ],
)  # fmt: skip
def test_the_check_sum(data: bytes, crc: int) -> None:
    assert pix.crc16(data) == crc


def test_the_fields_of_a_code() -> None:
    code = pix.code(KEY, "Café São João", 7050, "ORD-000042")
    assert code is not None
    found = fields(code)
    assert fields(found.pop("26")) == {"00": "br.gov.bcb.pix", "01": KEY}
    assert fields(found.pop("62")) == {"05": "ORD000042"}
    assert found.pop("63") == f"{pix.crc16(code[:-4].encode()):04X}"
    assert found == {
        "00": "01", "52": "0000", "53": "986", "54": "70.50", "58": "BR", "59": "Cafe Sao Joao",
        "60": "BRASIL",
    }  # fmt: skip


def test_the_code_of_the_manual_has_the_same_account() -> None:
    code = pix.code(KEY, "Fulano de Tal", 100, "x")
    assert code is not None
    ours, theirs = fields(code), fields(MANUAL)
    for number in ("00", "26", "52", "53", "58", "59"):
        assert ours[number] == theirs[number]


@pytest.mark.parametrize(
    ("centavos", "text"),
    [(1, "0.01"), (100, "1.00"), (123_456, "1234.56"), (999_999_999_999, "9999999999.99")],
)
def test_amounts(centavos: int, text: str) -> None:
    code = pix.code(KEY, "Shop", centavos, "x")
    assert code is not None
    assert fields(code)["54"] == text


def test_the_longest_key_fills_its_field() -> None:
    code = pix.code("k" * 77, "n" * 99, 1, "t" * 99)
    assert code is not None
    found = fields(code)
    assert len(found["26"]) == 99
    assert (found["59"], fields(found["62"])["05"]) == ("n" * 25, "t" * 25)


@pytest.mark.parametrize(("name", "shown"), [("東京", "PIX"), ("  A   B ", "A B"), ("É", "E")])
def test_a_name_is_plain_text(name: str, shown: str) -> None:
    code = pix.code(KEY, name, 1, "x")
    assert code is not None
    assert fields(code)["59"] == shown
    assert re.fullmatch("[ -~]+", code)


@pytest.mark.parametrize(
    ("key", "centavos"),
    [("k" * 78, 1), ("chave-é", 1), (" ", 1), ("a\nb", 1), (KEY, 0), (KEY, 1_000_000_000_000)],
)
def test_what_no_code_can_express(key: str, centavos: int) -> None:
    assert pix.code(key, "Shop", centavos, "x") is None


@pytest.mark.parametrize(
    ("key", "decoded"),
    [
        ("529.982.247-25", "52998224725"), ("11.222.333/0001-81", "11222333000181"),
        ("Pix@Shop.Example", "pix@shop.example"), ("+55 (11) 98888-7777", "+5511988887777"),
        (KEY, KEY),
    ],
)  # fmt: skip
def test_another_program_decodes_a_code(key: str, decoded: str) -> None:
    """A key from before keys were checked is written as the banks have it, too."""
    code = pix.code(key, "Café São João", 1290, "ORD-000042")
    assert code is not None
    found = pixcanvas.parse_pix(code)
    assert (found.pix_key, found.amount, found.txid) == (decoded, Decimal("12.90"), "ORD000042")
    assert (found.merchant_name, found.merchant_city) == ("CAFE SAO JOAO", "BRASIL")
    assert pixcanvas.validate_pix(code).warnings == ()
    with pytest.raises(pixcanvas.InvalidCRCError):
        pixcanvas.parse_pix(code.replace("12.90", "12.91"))


def test_a_code_with_an_alphanumeric_company() -> None:
    """pixcanvas 0.5 knows numeric ones only, so its reader of fields reads this one."""
    code = pix.code("12.ABC.345/01DE-35", "Shop", 100, "ORD-000042")
    assert code is not None
    [account] = [one for one in decode_tlv(code) if one.field_id == "26"]
    assert [one.value for one in decode_template(account.value)] == [
        "br.gov.bcb.pix", "12ABC34501DE35",
    ]  # fmt: skip

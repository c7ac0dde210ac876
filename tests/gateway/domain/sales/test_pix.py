"""Pix codes: the check sum, the fields, and what cannot be written."""

from decimal import Decimal

import pixcanvas
import pytest

from gateway.domain.sales import pix

KEY = "123e4567-e12b-12d1-a456-426655440000"


def fields(text: str) -> dict[str, str]:
    """Parse `id length value …`, as a bank does."""
    found = {}
    while text:
        number, length = text[:2], int(text[2:4])
        found[number], text = text[4 : 4 + length], text[4 + length :]
        assert len(found[number]) == length
    return found


def test_the_fields_at_their_bounds() -> None:
    for key, name, centavos, text, shown, amount in (
        (KEY, "Shop", 1, "x", "Shop", "0.01"),
        (KEY, "東京", 123_456, "x", "DongJing", "1234.56"),
        (KEY, "Łuís & Cia. @ Açaí", 5, "x", "Luis Cia. Acai", "0.05"),
        (KEY, "☕", 5, "x", "coffee", "0.05"),
        (KEY, "&", 5, "x", "PIX", "0.05"),
        ("k" * 77, "n" * 99, 999_999_999_999, "t" * 99, "n" * 25, "9999999999.99"),
    ):
        code = pix.code(key, name, centavos, text)
        assert code is not None
        found = fields(code)
        assert (found["59"], found["54"]) == (shown, amount)
        assert fields(found["62"])["05"] == text[:25]
        assert fields(found["26"])["01"] == key


@pytest.mark.parametrize(
    "text",
    [
        # The example of the Banco Central's manual, and codes that banks have issued.
        "00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR"
        "5913Fulano de Tal6008BRASILIA62070503***63041D3D",
        "00020126700014br.gov.bcb.pix0136403f6c37-bb1d-48aa-a61c-0f6a205764d80208[Pix.ae]520400005"
        "3039865802BR5903Pix6003Pix63042275",
        "00020126660014br.gov.bcb.pix0136cb0bed1e-d524-40a5-ac5e-2b4122b8711e0204FLIP520400005303"
        "9865406120.005802BR5924DIEGO DOS SANTOS SANTANA6008SAOPAULO62090505Teste63046CD6",
    ],
)
def test_the_check_sum_of_published_codes(text: str) -> None:
    assert f"{pix.crc16(text[:-4].encode()):04X}" == text[-4:]


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

"""CEP, CPF, CNPJ and phones are shown as Brazilians write them."""

import pytest

from gateway.records.values.masks import masked


@pytest.mark.parametrize(
    ("name", "stored", "shown"),
    [
        ("cep", "01310100", "01310-100"),
        ("cepFrom", "0131010", "0131010"),
        ("document", "12345678909", "123.456.789-09"),
        ("document", "11222333000181", "11.222.333/0001-81"),
        ("cnpj", "12ABC34501DE35", "12.ABC.345/01DE-35"),
        ("cnpj", "not a number", "not a number"),
        ("phone", "+5511988887777", "(11) 98888-7777"),
        ("phone", "11 98888 7777", "(11) 98888-7777"),
        ("phone", "1133334444", "(11) 3333-4444"),
        ("phone", "08007701234", "0800 770 1234"),
        ("phone", "+351912345678", "+351 912 345 678"),
        ("phone", "ramal 12", "ramal 12"),
        ("phone", None, None),
        ("name", "01310100", "01310100"),
    ],
)
def test_the_usual_form(name: str, stored: str | None, shown: str | None) -> None:
    assert masked(name, stored) == shown

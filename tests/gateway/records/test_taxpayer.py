"""The numbers of taxpayers: CPF and CNPJ."""

import pytest

from gateway.records.values import taxpayer
from gateway.records.values.formats import Wrong

FORMAT = taxpayer.taxpayer()


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("52998224725", "52998224725"), ("529.982.247-25", "52998224725"),
        ("123.456.789-09", "12345678909"), ("111.444.777-35", "11144477735"),
        ("00000000191", "00000000191"), ("100.000.001-08", "10000000108"),
        ("11.222.333/0001-81", "11222333000181"), ("12abc34501de35", "12ABC34501DE35"),
    ],
)  # fmt: skip
def test_valid_numbers_are_kept_without_mask(sent: str, stored: str) -> None:
    assert FORMAT.check(sent) == stored


@pytest.mark.parametrize(
    "sent",
    [
        "", "5299822472", "529982247255", "52998224724", "52998224735", "529.982.247.25",
        "529-982-247-25", "00000000000", "111.111.111-11", "99999999999", "٥٢٩٩٨٢٢٤٧٢٥",
        "11.222.333/0001-82", "x" * 33,
    ],
)  # fmt: skip
def test_invalid_numbers_are_refused(sent: str) -> None:
    with pytest.raises(Wrong):
        FORMAT.check(sent)

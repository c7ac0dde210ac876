"""Pix keys: each kind in the form of the banks' directory, and a sentence for each wrong one."""

import pytest

from gateway.records.values import pix_key
from gateway.records.values.formats import Wrong

RANDOM = "123e4567-e89b-12d3-a456-426655440000"
KEY = pix_key.pix_key()


@pytest.mark.parametrize(
    ("sent", "kind", "key"),
    [
        ("529.982.247-25", "cpf", "52998224725"), ("52998224725", "cpf", "52998224725"),
        ("11.222.333/0001-81", "cnpj", "11222333000181"),
        # The example of the Receita Federal for alphanumeric numbers.
        ("12.ABC.345/01DE-35", "cnpj", "12ABC34501DE35"),
        ("12abc34501de35", "cnpj", "12ABC34501DE35"),
        (" Pix@Shop.Example ", "email", "pix@shop.example"),
        (f"{'a' * 64}@{'b' * 9}.com", None, None),
        ("+5511988887777", "phone", "+5511988887777"),
        ("+55 (11) 98888-7777", "phone", "+5511988887777"),
        ("+551133334444", "phone", "+551133334444"),
        (RANDOM, "random", RANDOM), (RANDOM.upper(), "random", RANDOM),
    ],
)  # fmt: skip
def test_a_key_of_each_kind(sent: str, kind: str | None, key: str | None) -> None:
    if kind is None:
        assert len(sent) == 78
        with pytest.raises(Wrong):
            KEY.check(sent)
        return
    assert (pix_key.kind_of(sent.strip()), KEY.check(sent), pix_key.normal(sent)) == (
        kind, key, key,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ("529.982.247-24", "is a CPF, and its check digits are wrong"),
        ("111.111.111-11", "is a CPF, and its check digits are wrong"),
        # A phone without its country is not guessed: 11 digits are a CPF.
        ("11988887777", "A phone starts with +55."),
        ("11.222.333/0001-82", "is a CNPJ, and its check digits are wrong"),
        ("12.ABC.345/01DE-36", "is a CNPJ, and its check digits are wrong"),
        ("00000000000000", "is a CNPJ, and its check digits are wrong"),
        ("pix@shop", "Send an e-mail address"), ("pix@", "Send an e-mail address"),
        ("loja@café.example", "of at most 77 ASCII characters"),
        ("+1 212 555 0100", "Send a Brazilian phone as +55"),
        ("+55 11 8888-777", "Send a Brazilian phone as +55"),
        ("+5501988887777", "Send a Brazilian phone as +55"),
        (RANDOM.replace("-", ""), "Send a random key with its hyphens"),
        (RANDOM[:-1], "Send a random key with its hyphens"),
        ("my key", "Send a CPF, a CNPJ, an e-mail address, a phone"),
        ("１２３４５６７８９０１", "Send a CPF, a CNPJ, an e-mail address, a phone"),
        (" ", "Send a CPF, a CNPJ, an e-mail address, a phone"),
    ],
)  # fmt: skip
def test_what_is_no_key_says_how_to_mend_it(sent: str, sentence: str) -> None:
    assert pix_key.normal(sent) is None
    with pytest.raises(Wrong) as wrong:
        KEY.check(sent)
    assert wrong.value.code == "invalid_pix_key"
    assert sentence in wrong.value.message

"""When two addresses are one mailbox, and which characters no address has."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.records.values import formats, hostnames
from gateway.records.values.emails import ascii_domain, character_name, fold_email, spellings
from gateway.records.values.formats import Wrong


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ana@exämple.de", "ana@xn--exmple-cua.de", True),
        ("Ana@EXÄMPLE.de", "ana@XN--EXMPLE-CUA.DE", True),
        ("ana@exa\u0308mple.de", "ana@exämple.de", True),
        ("jose\u0301@x.co", "JOSÉ@x.co", True),
        ("straße@x.co", "strasse@x.co", False),
        ("ana@straße.de", "ana@strasse.de", False),
        ("ana@straße.de", "ana@xn--strae-oqa.de", True),
        ("ana@σ.gr", "ana@ς.gr", False),
        ("ana@ｅxample.com", "ana@example.com", True),
        ("ana@☕.example", "ana@xn--53h.example", True),
        ("ﬁ@x.co", "fi@x.co", False),
        ("ana@x_y.co", "ana@X_Y.co", True),
        ("e" + "\u0301\u0316" * 100_000, "e" + "\u0316\u0301" * 100_000, False),
        # A label that is too long for DNS stays; its punycode would take the square of the time.
        ("ana@" + "".join(map(chr, range(0x4E00, 0x4E00 + 1_000))), "ana@xn--x", False),
    ],
)
def test_addresses_are_compared_as_their_parts_are(one: str, other: str, same: bool) -> None:
    assert (fold_email(one) == fold_email(other)) is same


@pytest.mark.slow
@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_what_is_folded_stays(local: str, domain: str) -> None:
    for spelling in spellings(f"{local}@{domain}"):
        assert fold_email(fold_email(spelling)) == fold_email(spelling)


def test_the_spellings_of_an_address_have_both_forms_of_its_domain() -> None:
    assert spellings("Ana@Example.com") == ("Ana@Example.com",)
    for email in ("a@exämple.de", "a@xn--exmple-cua.de"):
        assert set(spellings(email)) == {"a@exämple.de", "a@xn--exmple-cua.de"}
    # Punycode that names no domain stays as it is.
    assert spellings("a@xn--\u0000.de") == ("a@xn--\u0000.de",)


def hidden() -> list[str]:
    kinds = ("Cc", "Cf", "Co", "Zl", "Zp", "Zs")
    blocks = ((0, 0x3001), (0xE000, 0xF900), (0xFE00, 0x30000), (0xE0000, 0xE0200))
    every = [chr(code) for first, end in blocks for code in range(first, end)]
    return [c for c in every if unicodedata.category(c) in kinds and c not in " \0"]


@pytest.mark.slow
def test_an_invisible_character_is_refused_by_its_name() -> None:
    email = formats.email()
    named = {
        "\u200b": "U+200B ZERO WIDTH SPACE", "\ufeff": "U+FEFF ZERO WIDTH NO-BREAK SPACE",
        "\u00ad": "U+00AD SOFT HYPHEN", "\u202e": "U+202E RIGHT-TO-LEFT OVERRIDE",
        "\u2060": "U+2060 WORD JOINER", "\u200e": "U+200E LEFT-TO-RIGHT MARK",
        "\u3164": "U+3164 HANGUL FILLER", "\ufe0f": "U+FE0F VARIATION SELECTOR-16",
        "\U000e0061": "U+E0061 TAG LATIN SMALL LETTER A", "\t": "U+0009 CHARACTER TABULATION",
        "\u0081": "U+0081 WITHOUT A NAME",
    }  # fmt: skip
    for character in dict.fromkeys((*named, *hidden())):
        for place in (1, 8, 15):
            sent = f"{'ana@example.com'[:place]}{character}{'ana@example.com'[place:]}"
            with pytest.raises(Wrong) as refused:
                email.check(sent)
            assert refused.value.code == "invalid_email"
            assert named.get(character, character_name(character)) in refused.value.message


@pytest.mark.parametrize(
    ("host", "stored"),
    [
        ("Straße.de", "xn--strae-oqa.de"),
        ("café.example:443", "xn--caf-dma.example"),
        ("a\u200bb.example", "ab.example"),
        ("a..example", None),
        (f"{'é' * 60}.example", None),
    ],
)
def test_hostnames_are_stored_as_browsers_send_them(host: str, stored: str | None) -> None:
    assert hostnames.normal(host) == stored
    assert stored is None or ascii_domain(stored) == stored

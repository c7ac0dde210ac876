"""How an address is found in text: whole, in any spelling, and never a neighbour's."""

import random
import unicodedata

import pytest

from gateway.domain.privacy.mailboxes import Mailboxes
from gateway.records.values.csv_cells import inert, plain
from gateway.records.values.emails import fold_email, spellings
from gateway.records.values.formats import Wrong, email

ANA = Mailboxes(["Ana@gmail.com"])
ODD = Mailboxes(
    [
        *spellings("josé.o'hara+x@Exämple.bücher.de"), "_li_@x.example", "王芳@邮箱.公司",
        "straße@x.example", "σας@x.example", "=1@x.example",
    ]
)  # fmt: skip


def without(mailboxes: Mailboxes, text: str) -> str:
    """Return a text with a star for each address."""
    bare, before = "", 0
    for start, end in sorted(mailboxes.spans(text)):
        if end > before:
            bare, before = f"{bare}{text[before:start]}*", end
    return bare + text[before:]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("ana@gmail.com", "*"),
        (" ANA@GMail.Com\t", " *\t"),
        ('"ana@gmail.com"', '"*"'),
        ("'ana@gmail.com'", "'*'"),
        ("’ana@gmail.com’ “ana@gmail.com” «ana@gmail.com»", "’*’ “*” «*»"),
        ("Ana Lima <ana@gmail.com>", "Ana Lima <*>"),
        ("(ana@gmail.com) [ana@gmail.com] {ana@gmail.com}", "(*) [*] {*}"),
        ("mailto:ana@gmail.com?subject=x", "mailto:*?subject=x"),
        ("x=ana@gmail.com&y=1", "x=*&y=1"),
        ("https://ana@gmail.com/ana@gmail.com/x", "https://*/*/x"),
        ("Fale com ana@gmail.com.", "Fale com *."),
        ("ana@gmail.com. Ou ana@gmail.com... Ou ana@gmail.com?!", "*. Ou *... Ou *?!"),
        ("veja...ana@gmail.com…e", "veja...*…e"),
        ("ana@gmail.com,rui@x.com;ana@gmail.com|ana@gmail.com ::: b@x.com",
         "*,rui@x.com;*|* ::: b@x.com"),
        ("- ana@gmail.com\n-ana@gmail.com\n• ana@gmail.com\n•ana@gmail.com", "- *\n-*\n• *\n•*"),
        ("ana@gmail.com-", "*-"),
        ("ana@gmail.com - casa; ana@gmail.com—casa", "* - casa; *—casa"),
        ("**ana@gmail.com**, `ana@gmail.com`, ana@gmail.com's", "*****, `*`, *'s"),
        ("📧ana@gmail.com✉", "📧*✉"),
        ("ana@gmail.com_2026.pdf", "*_2026.pdf"),
        ("ana@gmail.com:25 ana@gmail.com#x", "*:25 *#x"),
        (r"Contato:\nana@gmail.com\r\nana@gmail.com", r"Contato:\n*\r\n*"),
        ("ana@gmail.com@gmail.com", "*@gmail.com"),
        # The full stops of Chinese: one ends a sentence, one is read as a dot by IDNA.
        # Scripts without blanks between words.
        ("写ana@gmail.com", "写*"),
        ("メールはana@gmail.comです。", "メールは*です。"),
        ("연락처는 ana@gmail.com입니다", "연락처는 *입니다"),
        ("_ana@gmail.com_ __ana@gmail.com__", "_*_ __*__"),
        ("写：ana@gmail.com。请", "写：*。请"),
        ("ana@gmail。com", "*"),
        # Characters that nobody sees, other widths, letters taken apart.
        ("a\u00adna@gmail.com a\u200bna@gmail.com ana@\u2060gmail\ufeff.com", "* * *"),
        ("a\u3164na@gmail.com \u115fana@g\U000e0041mail.c\ufe0fom", "* \u115f*"),
        ("ａｎａ＠ｇｍａｉｌ．ｃｏｍ ana﹫gmail.com ana@ⓖmail.com", "* * *"),
        ("𝐚𝐧𝐚@gmail.com", "*"),
    ],
)  # fmt: skip
def test_an_address_is_found_whole(text: str, bare: str) -> None:
    assert without(ANA, text) == bare
    assert ANA.within(text) is (bare != text)


@pytest.mark.parametrize(
    "text",
    [
        "mariana@gmail.com", "Luciana@gmail.com", "1ana@gmail.com", "_ana@gmail.com",
        "maria.ana@gmail.com", "maria-ana@gmail.com", "maria+ana@gmail.com", "maria'ana@gmail.com",
        "maria’ana@gmail.com", "maria_ana@gmail.com", "maria%ana@gmail.com", "r&ana@gmail.com",
        "maria--ana@gmail.com", "a#ana@gmail.com", "a~ana@gmail.com", "joão.ana@gmail.com",
        "éana@gmail.com", "e\u0301ana@gmail.com", "жana@gmail.com", "कीana@gmail.com",
        "n\u200bana@gmail.com", "mari\u00adana@gmail.com", "ｍana@gmail.com", "ｍ．ana@gmail.com",
        "ana@gmail.com.br", "ana@gmail.com.BR", "ana@gmail.comx", "ana@gmail.com2",
        "ana@gmail.com-x", "ana@gmail.com-x.com", "ana@gmail.com--x.com", "ana@gmail.comé",
        "ana@gmail.come\u0301", "ana@gmail.co\u006d\u0323", "ana@gmail.com\u00ad.br",
        "ana@gmail.com．ｂｒ", "ana@gmail.com.\u200bbr", "ana@mail.gmail.com", "ana@xgmail.com",
        "ana.@gmail.com", "ana+x@gmail.com", "ana@gmail", "ana @gmail.com", "ana@ gmail.com",
        "ana@gmail..com", "ana@hotmail.com", "ána@gmail.com", "ana(a)gmail.com", "", "@", "ana@",
    ],
)  # fmt: skip
def test_an_address_of_somebody_else_is_not_found(text: str) -> None:
    assert not ANA.within(text)
    assert not ANA.within(f"<{text}>, {text} {text}")


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("JOSE\u0301.O'Hara+X@exämple.bücher.de", "*"),
        ("josé.o'hara+x@xn--exmple-cua.xn--bcher-kva.de.", "*."),
        # One label in each form, as some programs write them.
        ("josé.o'hara+x@exämple.XN--BCHER-KVA.de", "*"),
        ("jose.o'hara+x@exämple.bücher.de", "jose.o'hara+x@exämple.bücher.de"),
        ("o'hara+x@exämple.bücher.de", "o'hara+x@exämple.bücher.de"),
        ("_li_@x.example, a_li_@x.example", "*, a_li_@x.example"),
        ("<王芳@邮箱.公司>", "<*>"),
        ("小王芳@邮箱.公司 王芳@邮箱.公司.cn", "小王芳@邮箱.公司 王芳@邮箱.公司.cn"),
        ("STRASSE@x.example Straße@x.example", "STRASSE@x.example *"),
        ("ΣΑΣ@x.example", "*"),
        ("'=1@x.example", "'*"),
        ("1@x.example", "1@x.example"),
    ],
)
def test_odd_addresses_are_found_whole(text: str, bare: str) -> None:
    assert without(ODD, text) == bare


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tasks-5-ana@gmail.com", True),
        ("a_ana@gmail.com.", True),
        ("v1.ana@gmail.com-2026-01-01", True),
        ("ana@gmail.com--2", True),
        ("ana@gmail.com", True),
        ("mariana@gmail.com", False),
        ("x-mariana@gmail.com-1", False),
        ("éana@gmail.com", False),
        ("ana@gmail.com.br-1", False),
        ("ana@gmail.com2", False),
    ],
)
def test_a_text_of_the_person_may_join_the_address_to_words(text: str, found: bool) -> None:
    assert ANA.within(text, joined=True) is found


def test_several_addresses_are_found_beside_each_other() -> None:
    known = Mailboxes(["mariana@x.example", "ana@x.example", "@x.example", "ana@", "", "x"])
    text = "ana@x.example mariana@x.example luciana@x.example x=ana@x.example @x.example ana@ x"
    assert without(known, text) == "* * luciana@x.example x=* @x.example ana@ x"
    assert without(known, "ana@x.example") == without(known, "mariana@x.example") == "*"
    assert without(Mailboxes(["x=ana@x.example", "ana@x.example"]), "x=ana@x.example") == "*"
    assert not Mailboxes([]).within("ana@x.example")


@pytest.mark.slow
def test_what_an_import_would_store_as_the_address_is_found() -> None:
    """Any cell that the import reads as an address of this mailbox, of random characters."""
    dice = random.Random(45)
    letters, ends = "aAéÉßıİǅσΣ1_'.-+\u00ad\u200b\u200dｅk\u212a", "aäÄß1-.xn\u00ad\u200bｅk\u212a"
    known = "".join
    found = 0
    for _ in range(20_000):
        local, domain = known(dice.choices(letters, k=3)), known(dice.choices(ends, k=4))
        cell = f"{local}@{domain}.com"
        try:
            stored = email().check(plain(cell))
        except Wrong:
            continue
        other = known(dice.choice((one.upper(), one.lower(), one)) for one in cell)
        other = unicodedata.normalize(dice.choice(("NFC", "NFD")), other)
        if fold_email(plain(other)) == fold_email(stored):
            found += 1
            for text in (other, inert(other), f"x {other}. y", f"<{other}>"):
                assert Mailboxes([stored]).within(text), (stored, text)
            assert not Mailboxes([stored]).within(f"x{other}")
            assert not Mailboxes([stored]).within(f"{other}x")
    assert found > 1_000


@pytest.mark.slow
def test_long_texts_take_no_long_time() -> None:
    """Each of these would take minutes if its length counted squared."""
    for text in (
        "." * 2_000_000 + "ana@gmail.com", "ana@gmail.com" + "-" * 2_000_000, "@" * 500_000,
        "ana@" * 200_000, "ana@" + "é." * 500_000, "ana@gmail.com" + "\u0301" * 500_000,
        ("ana@" + "-" * 900) * 500, ("ana@" + "x-" * 450) * 500,
    ):  # fmt: skip
        ANA.within(text)
        ANA.within(text, joined=True)
    assert ANA.within("x" * 500_000 + " é ana@gmail.com " + "x" * 500_000)

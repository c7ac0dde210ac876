"""Origins in one spelling, that of browsers."""

import pytest

from gateway.server.web_origins import normal, spelled


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://crm.example.com", "https://crm.example.com"),
        ("HTTPS://CRM.Example.COM", "https://crm.example.com"),
        ("https://crm.example.com/", "https://crm.example.com"),
        ("https://crm.example.com.", "https://crm.example.com"),
        ("https://crm.example.com.:443/", "https://crm.example.com"),
        ("http://crm.example.com:80", "http://crm.example.com"),
        ("https://crm.example.com:80", "https://crm.example.com:80"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://São-Paulo.example", "https://xn--so-paulo-rza.example"),
        ("https://faß.example", "https://xn--fa-hia.example"),
        ("https://βόλος.example", "https://xn--nxasmm1c.example"),
        ("https://نامه\u200cای.example", "https://xn--mgba3gch31f060k.example"),
        ("https://日本。jp", "https://xn--wgv71a.jp"),
        ("https://ＳＨＯＰ.example", "https://shop.example"),
        ("https://sh\u00adop.example", "https://shop.example"),
        ("https://☕.example", "https://xn--53h.example"),
        ("http://127.0.0.1:65535", "http://127.0.0.1:65535"),
        ("http://[::1]:80", "http://[::1]"),
        ("https://[2001:DB8:0:0::1]:8443", "https://[2001:db8::1]:8443"),
        ("http://a_b.example", "http://a_b.example"),
    ],
)
def test_an_origin_has_one_spelling(text: str, origin: str) -> None:
    assert normal(text) == spelled(text) == origin
    assert normal(origin) == origin


@pytest.mark.parametrize(
    "text",
    ["", "*", "null", "crm.example.com", "https://", "https:///", "https://.", "ftp://a.example",
     "https://a.example/path", "https://a.example?x", "https://a.example#x", "https://u@a.example",
     "https://a.example:", "https://a.example:0", "https://a.example:65536", "https://a.example:x",
     "https://a.example:-1", "https://a b.example", "https://a.example\n", "https://-a.example",
     "https://a..example", "https://a.example..", "https://*.example", "https://1.2.3",
     "https://256.1.1.1", "https://0x7f.1", "https://[::1", "https://[::g]", "https://a\\b",
     "https://" + "a" * 64 + ".example", "https://%41.example", "https://[fe80::1%25eth0]",
     "https://a.example, https://b.example", "https://⒈com.example"],
)  # fmt: skip
def test_what_is_no_origin_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as|a number from 1 to 65535") as caught:
        normal(text)
    assert repr(text) in str(caught.value)
    # What a client sends is compared, not judged.
    assert spelled(text) == text.lower()

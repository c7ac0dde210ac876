"""Which spellings, addresses, ports and opened places the egress guard allows."""

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.sending.addresses import Rules, is_public, may_dial, parse_place
from outbox.sending.urls import Refused, check_url, same_server

STRICT = Rules()
PLAIN = Rules(allow_http=True)

REFUSED_ADDRESSES = [
    # Each table row at both of its ends, metadata services, and IPv4 inside IPv6.
    "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200",
    "100.127.255.255", "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.0.0",
    "169.254.169.254", "169.254.170.2", "169.254.255.255", "172.16.0.0", "172.31.255.255",
    "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.31.196.1", "192.52.193.1",
    "192.88.99.1", "192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
    "::", "::1", "::7f00:1", "::808:808", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "1fff:ffff::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:808:808::1", "2620:4f:8000::1", "3ffe::1", "3fff::1", "3fff:fff::1", "4000::1",
    "5f00::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%eth0",
    "fec0::1", "ff02::1", "ff0e::1", "2606:4700::1111%lo",
]  # fmt: skip

ALLOWED_ADDRESSES = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255",
    "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255",
    "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
    "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1",
    "2003::1", "2606:4700::1111", "2620:4f:7fff::1", "2620:4f:8001::1", "3ffd:ffff::1",
    "3fff:1000::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
]  # fmt: skip


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
def test_refused_addresses(address: str) -> None:
    assert not is_public(ip_address(address))
    assert not may_dial(address, 443, STRICT)


@pytest.mark.parametrize("address", ALLOWED_ADDRESSES)
def test_allowed_addresses(address: str) -> None:
    assert is_public(ip_address(address))
    assert may_dial(address, 443, STRICT)


@given(st.ip_addresses(v=4))
def test_embedding_an_address_in_ipv6_changes_no_verdict(address: IPv4Address) -> None:
    for prefix in ("::ffff:", "64:ff9b::"):
        assert may_dial(f"{prefix}{address}", 443, STRICT) == may_dial(str(address), 443, STRICT)


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "127.1", "0x7f.0.0.1", "::1::"])
def test_invalid_addresses_are_refused(text: str) -> None:
    assert not may_dial(text, 443, Rules(allow=(parse_place("0.0.0.0/0"),)))


def test_a_valid_url_is_parsed() -> None:
    target = check_url("https://BÜCHER.example:8443/hook", STRICT)
    assert (target.host, target.port, target.literal) == ("xn--bcher-kva.example", 8443, False)
    # The Persian name has a joiner, without which it is another name.
    for name in ("xn--fa-hia.example", "xn--mgba3gch31f060k.example"):
        assert check_url(f"https://{name}/", STRICT).host == name
    assert check_url("https://faß.example/", STRICT).host == "xn--fa-hia.example"
    target = check_url("http://[2606:4700::1111]/", PLAIN)
    assert (target.host, target.port, target.literal) == ("2606:4700::1111", 80, True)


SPELLINGS = {
    "https://": ["", "example.com/hook", "//example.com/", "https:/example.com/",
        "https:example.com", "ftp://example.com/", "file:///etc/passwd",
        "gopher://example.com:6379/_x", "javascript://example.com/%0aalert(1)",
        "wss://example.com/"],
    "plain http": ["http://example.com/", "HTTP://example.com/"],
    "no host": ["https://", "https:///path", "https://:443/"],
    "Authorization header": ["https://user@example.com/", "https://user:pass@example.com/",
        "https://1.1.1.1@example.com/", "https://@example.com/"],
    "#fragment": ["https://example.com/#part", "https://example.com#@evil.example/"],
    "spaces": ["https://example.com/a b", " https://example.com/", "https://example.com/\n",
        "https://exa\tmple.com/"],
    "backslash": ["https://example.com\\@evil.example/"],
    "control": ["https://example.com/\x00", "https://exam\u200bple.com/",
        "https://exam\u00adple.com/"],
    "port": ["https://example.com:/", "https://example.com:0/", "https://example.com:0443/",
        "https://example.com:65536/", "https://example.com:+443/", "https://example.com:４４３/"],
    "brackets": ["https://example.com:443:443/", "https://2606:4700::1111/"],
    "port 22": ["https://example.com:22/"],
    "port 25": ["https://example.com:25/"],
    "port 1023": ["https://example.com:1023/"],
    "port 5432": ["https://example.com:5432/"],
    "port 6379": ["https://example.com:6379/"],
    "port 9200": ["https://example.com:9200/"],
    "port 11211": ["https://example.com:11211/"],
    "IPv6": ["https://[::1/", "https://[::1]x/"],
    "not an IPv6": ["https://[v1.x]/", "https://[127.0.0.1]/"],
    "not an IPv6|zone": ["https://[fe80::1%25eth0]/"],
    r"\[2606:4700::1111\]": ["https://[2606:4700:0::1111]/",
        "https://[2606:4700:0000:0000:0000:0000:0000:1111]/"],
    "end with a dot": ["https://example.com./", "https://1.1.1.1./"],
    "percent": ["https://example%2ecom/", "https://%31%32%37.0.0.1/"],
    "four decimal": ["https://2130706433/", "https://0x7f000001/", "https://017700000001/",
        "https://127.1/", "https://127.0.1/", "https://0x7f.1/", "https://0X7F.1/",
        "https://0177.0.0.1/", "https://1.1.1.01/", "https://1.1.1.256/", "https://1.1.1.1.1/",
        "https://example.0x/"],
    r"standard form: example\.com": ["https://example。com/", "https://ｅxample.com/",
        "https://ℯxample.com/"],
    "standard form: bücher.example": ["https://bu\u0308cher.example/"],
    "standard form, and has none": ["https://xn--a.example/", "https://℀.example/"],
    "standard form: 127.0.0.1": ["https://１２７.０.０.１/", "https://①②⑦.0.0.1/",
        "https://127。0。0。1/"],
    "standard form|valid host": ["https://xn--exmple-cua.xn--/"],
    "valid host": ["https://exa$mple.com/", "https://-example.com/", "https://example..com/",
        f"https://{'a' * 64}.com/", f"https://{'a.' * 130}com/"],
    "2048": [f"https://example.com/{'a' * 2048}"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("url", "hint"), [(url, hint) for hint, urls in SPELLINGS.items() for url in urls]
)
def test_bad_spellings_are_named(url: str, hint: str) -> None:
    with pytest.raises(Refused, match=hint) as refused:
        check_url(url, STRICT)
    kind = "form" if "form: " in hint else "http" if hint == "plain http" else "spelling"
    assert refused.value.kind == kind


@pytest.mark.parametrize(
    ("url", "allow_http", "says"),
    [
        ("http://hooks.example.com/", False, "use https, or allow it with SET_HTTP"),
        ("https://10.0.0.1/", False, "allow it with SET_ALLOW"),
        ("https://localhost/", True, "allow it with SET_ALLOW"),
        ("https://x.example:6379/", False, "this port with SET_ALLOW"),
        ("ftp://x.example/", False, "must start with https://"),
        ("ftp://x.example/", True, "must start with http:// or https://"),
        ("x.example", False, "must start with https://"),
        ("x.example", True, "must start with http:// or https://"),
    ],
)
def test_a_refusal_names_what_can_allow_it(url: str, allow_http: bool, says: str) -> None:
    rules = Rules(allow_http=allow_http, http_setting="SET_HTTP", allow_setting="SET_ALLOW")
    with pytest.raises(Refused) as refused:
        check_url(url, rules)
    assert str(refused.value).endswith(says)


@given(st.text(max_size=60))
@pytest.mark.slow
def test_any_text_is_judged_with_a_sentence(text: str) -> None:
    for url in (text, f"https://{text}", f"https://{text}.example/"):
        try:
            target = check_url(url, STRICT)
        except Refused:
            continue
        assert target.host.isascii()
        assert "@" not in target.url.authority


def test_an_opened_place_opens_exactly_that() -> None:
    rules = Rules(allow_http=True, allow=(parse_place("127.0.0.1/32:9000"),))
    assert check_url("http://127.0.0.1:9000/", rules).port == 9000
    assert check_url("http://localhost:9000/", rules).port == 9000
    for host in ("127.0.0.1:9001", "127.0.0.2:9000", "[::1]:9000", "localhost"):
        with pytest.raises(Refused):
            check_url(f"http://{host}/", rules)
    with pytest.raises(Refused, match="plain http"):
        check_url("http://127.0.0.1:9000/", Rules(allow=rules.allow))
    assert check_url("https://127.0.0.1:9000/", Rules(allow=rules.allow))


@pytest.mark.parametrize(
    ("place", "address", "port", "opens"),
    [
        # Without a port it opens the usual ones only.
        ("10.0.0.0/8", "10.1.2.3", 443, True), ("10.0.0.0/8", "10.1.2.3", 8080, True),
        ("10.0.0.0/8", "10.1.2.3", 6379, False), ("10.0.0.0/8", "10.1.2.3", 22, False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 443, True), ("10.0.0.5:6379", "10.0.0.5", 6379, True),
        ("10.0.0.5:6379", "10.0.0.6", 6379, False), ("10.0.0.5:6379", "1.1.1.1", 6379, False),
        ("[fd00::/8]:8080", "fd00::1", 8080, True), ("::1", "::1", 443, True),
    ],
)  # fmt: skip
def test_which_ports_a_place_opens(place: str, address: str, port: int, opens: bool) -> None:
    rules = Rules(allow_http=True, allow=(parse_place(place),))
    assert may_dial(address, port, rules) == opens
    if ":6379" in place:
        # A name may resolve to that network; the guard sees the address.
        assert check_url("http://redis.example:6379/", rules)


@pytest.mark.parametrize(
    "text",
    ["", "localhost", "10.0.0.1/8", "10.0.0.0/33", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
     "127.0.0.1:x", "[::1]:", "[::1", "[::1]9000", "[::1]:70000", "::1:9000/x",
     "127.0.0.1:9999999999999"],
)  # fmt: skip
def test_malformed_places_are_refused_with_their_text(text: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_place(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/x", "https://a.example/y?z=1", True),
        ("https://a.example/x", "HTTPS://A.example:443/y", True),
        ("https://a.example/", "https://b.example/", False),
        ("https://a.example/", "https://a.example.b.example/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example/", "http://a.example/", False),
        ("https://a.example/", "http://a.example:443/", False),
        ("https://a.example/", "https://a.example:x/", False),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]:443/", True),
        ("https://a.example/", "https://[", False),
    ],
)
def test_the_server_of_a_url_is_its_scheme_host_and_port(one: str, other: str, same: bool) -> None:
    assert same_server(one, other) is same

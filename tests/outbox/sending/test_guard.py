"""The egress guard: spellings, addresses, ports, and both checks."""

import asyncio
import socket
import threading
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.clock import SystemClock
from outbox.sending.addresses import Rules, is_public, may_dial, parse_place
from outbox.sending.guard import Guard
from outbox.sending.lookups import (
    FAILED_SECONDS,
    FRESH_SECONDS,
    MOST_THREADS,
    STALE_SECONDS,
    LookupFailed,
    ask_system,
)
from outbox.sending.urls import REFUSED_ADDRESS, Refused, check_url

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


@pytest.mark.slow
@given(st.ip_addresses())
def test_no_address_is_more_open_than_the_registries_say(
    address: IPv4Address | IPv6Address,
) -> None:
    if is_public(address) and not str(address).startswith(("::ffff:", "64:ff9b:")):
        assert not address.is_private
        assert not address.is_multicast
        assert not address.is_reserved or address.version == 6


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "127.1", "0x7f.0.0.1", "::1::"])
def test_invalid_addresses_are_refused(text: str) -> None:
    assert not may_dial(text, 443, Rules(allow=(parse_place("0.0.0.0/0"),)))


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com/hook?a=b%20c&d=é",
        "https://EXAMPLE.com:8443/x",
        "https://a.b-c.example.com/~user/./x",
        "https://under_score.example.com/",
        "https://bücher.example/hook",
        "https://xn--bcher-kva.example/hook",
        "https://日本.example/",
        "https://1.1.1.1/",
        "https://1.1.1.1:1024/",
        "https://[2606:4700::1111]/",
        "https://[2606:4700::1111]:8443/",
        "https://single/",
        "https://example.com:80/",
        "https://2130706433.example.com/",
    ],
)
def test_good_urls(url: str) -> None:
    target = check_url(url, STRICT)
    assert target.scheme == "https"
    again = check_url(str(target.url), STRICT)
    assert (again.host, again.port, again.url) == (target.host, target.port, target.url)


def test_a_valid_url_is_parsed() -> None:
    target = check_url("https://BÜCHER.example:8443/hook", STRICT)
    assert (target.host, target.port, target.literal) == ("xn--bcher-kva.example", 8443, False)
    target = check_url("http://[2606:4700::1111]/", PLAIN)
    assert (target.host, target.port, target.literal) == ("2606:4700::1111", 80, True)


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("", "https://"),
        ("example.com/hook", "https://"),
        ("//example.com/", "https://"),
        ("https:/example.com/", "https://"),
        ("https:example.com", "https://"),
        ("ftp://example.com/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("gopher://example.com:6379/_x", "https://"),
        ("javascript://example.com/%0aalert(1)", "https://"),
        ("wss://example.com/", "https://"),
        ("http://example.com/", "plain http"),
        ("HTTP://example.com/", "plain http"),
        ("https://", "no host"),
        ("https:///path", "no host"),
        ("https://:443/", "no host"),
        ("https://user@example.com/", "Authorization header"),
        ("https://user:pass@example.com/", "Authorization header"),
        ("https://1.1.1.1@example.com/", "Authorization header"),
        ("https://@example.com/", "Authorization header"),
        ("https://example.com/#part", "#fragment"),
        ("https://example.com#@evil.example/", "#fragment"),
        ("https://example.com/a b", "spaces"),
        (" https://example.com/", "spaces"),
        ("https://example.com/\n", "spaces"),
        ("https://exa\tmple.com/", "spaces"),
        ("https://example.com\\@evil.example/", "backslash"),
        ("https://example.com/\x00", "control"),
        ("https://exam\u200bple.com/", "control"),
        ("https://exam\u00adple.com/", "control"),
        ("https://example.com:/", "port"),
        ("https://example.com:0/", "port"),
        ("https://example.com:0443/", "port"),
        ("https://example.com:65536/", "port"),
        ("https://example.com:+443/", "port"),
        ("https://example.com:４４３/", "port"),
        ("https://example.com:443:443/", "brackets"),
        ("https://2606:4700::1111/", "brackets"),
        ("https://example.com:22/", "port 22"),
        ("https://example.com:25/", "port 25"),
        ("https://example.com:1023/", "port 1023"),
        ("https://example.com:5432/", "port 5432"),
        ("https://example.com:6379/", "port 6379"),
        ("https://example.com:9200/", "port 9200"),
        ("https://example.com:11211/", "port 11211"),
        ("https://[::1/", "IPv6"),
        ("https://[::1]x/", "IPv6"),
        ("https://[v1.x]/", "not an IPv6"),
        ("https://[127.0.0.1]/", "not an IPv6"),
        ("https://[fe80::1%25eth0]/", "not an IPv6|zone"),
        ("https://[2606:4700:0::1111]/", r"\[2606:4700::1111\]"),
        ("https://[2606:4700:0000:0000:0000:0000:0000:1111]/", r"\[2606:4700::1111\]"),
        ("https://example.com./", "end with a dot"),
        ("https://1.1.1.1./", "end with a dot"),
        ("https://example%2ecom/", "percent"),
        ("https://%31%32%37.0.0.1/", "percent"),
        ("https://2130706433/", "four decimal"),
        ("https://0x7f000001/", "four decimal"),
        ("https://017700000001/", "four decimal"),
        ("https://127.1/", "four decimal"),
        ("https://127.0.1/", "four decimal"),
        ("https://0x7f.1/", "four decimal"),
        ("https://0X7F.1/", "four decimal"),
        ("https://0177.0.0.1/", "four decimal"),
        ("https://1.1.1.01/", "four decimal"),
        ("https://1.1.1.256/", "four decimal"),
        ("https://1.1.1.1.1/", "four decimal"),
        ("https://example.0x/", "four decimal"),
        ("https://１２７.０.０.１/", "standard form"),
        ("https://①②⑦.0.0.1/", "standard form"),
        ("https://127。0。0。1/", "standard form"),
        ("https://example。com/", "standard form"),
        ("https://ｅxample.com/", "standard form"),
        ("https://ℯxample.com/", "standard form"),
        ("https://xn--a.example/", "standard form"),
        ("https://xn--exmple-cua.xn--/", "standard form|valid host"),
        ("https://exa$mple.com/", "valid host"),
        ("https://-example.com/", "valid host"),
        ("https://example..com/", "valid host"),
        (f"https://{'a' * 64}.com/", "valid host"),
        (f"https://{'a.' * 130}com/", "valid host"),
        (f"https://example.com/{'a' * 2048}", "2048"),
    ],
)
def test_bad_spellings_are_named(url: str, hint: str) -> None:
    with pytest.raises(Refused, match=hint) as refused:
        check_url(url, STRICT)
    assert refused.value.kind == "spelling"


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "0.0.0.0", "[::1]", "[fd00:ec2::254]",
     "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::1]",
     "localhost", "LOCALHOST", "db.localhost"],
)  # fmt: skip
def test_refusals_by_address_have_one_text(host: str) -> None:
    with pytest.raises(Refused) as refused:
        check_url(f"http://{host}/", PLAIN)
    assert refused.value.kind == "address"
    assert str(refused.value) == f"{REFUSED_ADDRESS}; allow it with the option --allow"


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


@given(
    st.lists(
        st.one_of(
            st.integers(0, 2**32).map(str), st.integers(0, 2**32).map(hex),
            st.integers(0, 2**32).map(lambda n: f"0{n:o}"),
        ),
        min_size=1, max_size=5,
    )
)  # fmt: skip
def test_no_numeric_host_passes_but_four_plain_decimals(parts: list[str]) -> None:
    host = ".".join(parts)
    try:
        target = check_url(f"https://{host}/", STRICT)
    except Refused:
        return
    assert str(IPv4Address(host)) == target.host
    assert is_public(IPv4Address(host))


def test_an_opened_place_opens_exactly_that() -> None:
    rules = Rules(allow_http=True, allow=(parse_place("127.0.0.1/32:9000"),))
    assert check_url("http://127.0.0.1:9000/", rules).port == 9000
    assert check_url("http://localhost:9000/", rules).port == 9000
    for url in ("http://127.0.0.1:9001/", "http://127.0.0.2:9000/", "http://[::1]:9000/",
                "http://localhost/"):  # fmt: skip
        with pytest.raises(Refused):
            check_url(url, rules)


def test_opening_a_place_does_not_open_plain_http() -> None:
    rules = Rules(allow=(parse_place("127.0.0.1:9000"),))
    with pytest.raises(Refused, match="plain http"):
        check_url("http://127.0.0.1:9000/", rules)
    assert check_url("https://127.0.0.1:9000/", rules)


def test_a_place_without_a_port_opens_the_usual_ports_only() -> None:
    rules = Rules(allow_http=True, allow=(parse_place("10.0.0.0/8"),))
    assert may_dial("10.1.2.3", 443, rules)
    assert may_dial("10.1.2.3", 8080, rules)
    assert not may_dial("10.1.2.3", 6379, rules)
    assert not may_dial("10.1.2.3", 22, rules)
    assert may_dial("::ffff:10.1.2.3", 443, rules)


def test_a_refused_port_opens_where_it_is_named_alone() -> None:
    rules = Rules(allow_http=True, allow=(parse_place("10.0.0.5:6379"),))
    assert may_dial("10.0.0.5", 6379, rules)
    assert not may_dial("10.0.0.6", 6379, rules)
    assert not may_dial("1.1.1.1", 6379, rules)
    # A name may resolve to that network; the guard sees the address.
    assert check_url("http://redis.example:6379/", rules)


@pytest.mark.parametrize(
    ("text", "network", "port"),
    [
        ("10.0.0.0/8", "10.0.0.0/8", None),
        ("127.0.0.1", "127.0.0.1/32", None),
        ("127.0.0.1/32:9000", "127.0.0.1/32", 9000),
        ("::1", "::1/128", None),
        ("fd00::/8", "fd00::/8", None),
        ("[::1]", "::1/128", None),
        ("[fd00::/8]:8080", "fd00::/8", 8080),
    ],
)
def test_places(text: str, network: str, port: int | None) -> None:
    place = parse_place(text)
    assert (str(place.network), place.port) == (network, port)


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


class Clock(SystemClock):
    """The system's clock, which a test can advance."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class Names:
    """A name server for tests: configurable results, a count of queries, and hanging queries."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers: dict[str, Sequence[str]] = dict(answers)
        self.asked: list[str] = []
        self.hold = threading.Event()
        self.hold.set()
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Sequence[str]:
        with self._lock:
            self.asked.append(host)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.hold.wait(10)
        with self._lock:
            self.at_once -= 1
        if host not in self.answers:
            raise LookupFailed("no such host")
        return self.answers[host]


def guarded(names: Names, clock: Clock | None = None, rules: Rules = STRICT) -> Guard:
    return Guard(rules, clock or Clock(), names)


async def test_the_resolver_returns_allowed_addresses() -> None:
    guard = guarded(Names(good=["1.1.1.1", "2606:4700::1111"]))
    found = await guard.resolve("good", 443)
    assert [(answer["host"], answer["port"], answer["family"]) for answer in found] == [
        ("1.1.1.1", 443, socket.AF_INET),
        ("2606:4700::1111", 443, socket.AF_INET6),
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_refused_answer_refuses_the_name(place: int) -> None:
    answers = ["1.1.1.1", "1.0.0.1"]
    answers.insert(place, "169.254.169.254")
    guard = guarded(Names(mixed=answers))
    with pytest.raises(Refused) as refused:
        await guard.resolve("mixed", 443)
    text = f"{REFUSED_ADDRESS}; allow it with the option --allow"
    assert (str(refused.value), refused.value.kind) == (text, "address")


async def test_a_refused_answer_far_down_a_long_list_refuses_too() -> None:
    many = [f"1.1.1.{n}" for n in range(200)]
    guard = guarded(Names(many=many, bad=[*many, "127.0.0.1"]))
    assert len(await guard.resolve("many", 443)) == 8
    with pytest.raises(Refused):
        await guard.resolve("bad", 443)


async def test_a_name_is_judged_for_each_port() -> None:
    rules = Rules(allow=(parse_place("127.0.0.1:9000"),))
    guard = guarded(Names(home=["127.0.0.1"]), rules=rules)
    assert await guard.resolve("home", 9000)
    with pytest.raises(Refused):
        await guard.resolve("home", 9001)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254"])
async def test_the_socket_factory_refuses_unresolved_addresses(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(Refused):
        guarded(Names()).open_socket((family, socket.SOCK_STREAM, 6, "", (address, 443)))


async def test_the_socket_factory_opens_what_is_allowed() -> None:
    info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("1.1.1.1", 443))
    with guarded(Names()).open_socket(info) as opened:
        assert opened.family == socket.AF_INET


async def test_results_are_cached_for_a_while() -> None:
    names, clock = Names(good=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    for _ in range(3):
        await guard.resolve("good", 443)
    assert names.asked == ["good"]
    names.answers["good"] = ["10.0.0.1"]
    clock.ahead += FRESH_SECONDS
    with pytest.raises(Refused):
        await guard.resolve("good", 443)


async def test_many_senders_share_one_look_up() -> None:
    names = Names(good=["1.1.1.1"])
    guard = guarded(names)
    found = await asyncio.gather(*(guard.resolve("good", 443) for _ in range(50)))
    assert names.asked == ["good"]
    assert len(found) == 50


async def test_failures_are_cached_and_then_tried_again() -> None:
    names, clock = Names(), Clock()
    guard = guarded(names, clock)
    for _ in range(3):
        with pytest.raises(LookupFailed, match="no such host"):
            await guard.resolve("gone", 443)
    assert names.asked == ["gone"]
    names.answers["gone"] = ["1.1.1.1"]
    clock.ahead += FAILED_SECONDS
    assert await guard.resolve("gone", 443)


async def test_no_answers_at_all_is_a_failure() -> None:
    with pytest.raises(LookupFailed, match="no such host"):
        await guarded(Names(empty=[])).resolve("empty", 443)


async def test_a_cached_result_is_used_while_the_name_servers_are_down() -> None:
    names, clock = Names(good=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    await guard.resolve("good", 443)
    del names.answers["good"]
    clock.ahead += FRESH_SECONDS
    assert await guard.resolve("good", 443)
    assert names.asked == ["good", "good"]
    clock.ahead += STALE_SECONDS
    with pytest.raises(LookupFailed):
        await guard.resolve("good", 443)


@pytest.mark.timed
@pytest.mark.slow
async def test_a_cached_result_is_used_when_a_new_one_takes_long() -> None:
    names, clock = Names(slow=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    await guard.resolve("slow", 443)
    names.hold.clear()
    clock.ahead += FRESH_SECONDS
    async with asyncio.timeout(2):
        assert await guard.resolve("slow", 443)
    names.hold.set()


@pytest.mark.timed
async def test_look_ups_that_take_long_make_room_for_others() -> None:
    done = threading.Event()

    def look_up(host: str) -> list[str]:
        if host != "good":
            done.wait(20)
        return ["1.1.1.1"]

    guard = Guard(Rules(), Clock(), look_up)
    dead = [asyncio.create_task(guard.resolve(f"dead{n}", 443)) for n in range(MOST_THREADS + 8)]
    try:
        async with asyncio.timeout(4):
            assert await guard.resolve("good", 443)
    finally:
        done.set()
        await asyncio.gather(*dead, return_exceptions=True)
        await guard.close()


async def test_a_slow_look_up_fails_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", 0.05)
    names, clock = Names(slow=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    names.hold.clear()
    with pytest.raises(LookupFailed, match="in time"):
        await guard.resolve("slow", 443)
    # The thread still runs; its late result is used once the failure has expired.
    with pytest.raises(LookupFailed, match="in time"):
        await guard.resolve("slow", 443)
    names.hold.set()
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", 5)
    clock.ahead += FAILED_SECONDS
    assert await guard.resolve("slow", 443)
    assert names.asked.count("slow") <= 2


@pytest.mark.slow
async def test_look_ups_take_a_bounded_number_of_threads() -> None:
    names = Names(**{f"h{n}": ["1.1.1.1"] for n in range(100)})
    names.hold.clear()
    guard = guarded(names)
    asking = [asyncio.create_task(guard.resolve(f"h{n}", 443)) for n in range(100)]
    while names.at_once < MOST_THREADS:
        await asyncio.sleep(0)
    names.hold.set()
    await asyncio.gather(*asking)
    assert names.most_at_once == MOST_THREADS


@pytest.mark.slow
async def test_dead_names_leave_threads_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", 1.0)
    names, clock = Names(good=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    dead = [f"dead{n}" for n in range(100)]
    await asyncio.gather(*(guard.resolve(name, 443) for name in dead), return_exceptions=True)
    clock.ahead += FAILED_SECONDS
    slow = threading.Event()

    def hanging(host: str) -> Sequence[str]:
        if host.startswith("dead"):
            slow.wait(10)
        return names(host)

    guard._lookups._look_up = hanging
    asking = [asyncio.create_task(guard.resolve(name, 443)) for name in dead]
    await asyncio.sleep(0)
    assert await guard.resolve("good", 443)
    slow.set()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_closing_abandons_running_look_ups() -> None:
    names = Names(slow=["1.1.1.1"])
    names.hold.clear()
    guard = guarded(names)
    asking = asyncio.create_task(guard.resolve("slow", 443))
    while not names.at_once:
        await asyncio.sleep(0)
    await guard.close()
    with pytest.raises(LookupFailed):
        await asking
    names.hold.set()


async def test_the_systems_own_resolver() -> None:
    rules = Rules(allow=(parse_place("127.0.0.0/8"), parse_place("::1")))
    guard = Guard(rules, SystemClock())
    assert {answer["host"] for answer in await guard.resolve("localhost", 443)} <= {
        "127.0.0.1", "::1"
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a..b", "n" * 300])
def test_a_name_that_cannot_be_asked_for_is_a_failure(name: str) -> None:
    with pytest.raises(LookupFailed):
        ask_system(name)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (socket.EAI_NONAME, "no such host"),
        (socket.EAI_AGAIN, "the name servers did not respond"),
        (socket.EAI_FAIL, "the name look-up failed"),
    ],
)
def test_the_systems_errors_in_a_few_words(
    code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(LookupFailed, match=f"^{text}$"):
        ask_system("example.com")

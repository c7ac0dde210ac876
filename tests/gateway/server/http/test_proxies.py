"""Whose word counts about where a request comes from."""

from collections.abc import Iterator, Mapping, Sequence

import pytest
import structlog
from multidict import CIMultiDict

from gateway.domain.accounts.networks import parse, share_of
from gateway.server.http.client_address import Client, Proxies

TRUSTED = ("127.0.0.0/8", "::1/128", "10.0.0.0/8")


def seen(headers: Mapping[str, str] | Sequence[tuple[str, str]], peer: str = "127.0.0.1") -> Client:
    return Proxies(TRUSTED).client(peer, "http", "a:80", CIMultiDict(headers))


@pytest.fixture
def lines() -> Iterator[list[structlog.typing.EventDict]]:
    with structlog.testing.capture_logs() as lines:
        yield lines


@pytest.mark.parametrize(
    ("chain", "address"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9", "203.0.113.9"),
        ("198.51.100.1, 203.0.113.9, 10.1.1.1", "203.0.113.9"),
        ("10.0.0.9, 10.1.1.1", "10.0.0.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:80", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("unknown", "127.0.0.1"),
        ("203.0.113.9, unknown", "127.0.0.1"),
        ("unknown, 203.0.113.9", "203.0.113.9"),
        ("", "127.0.0.1"),
        ("<script>", "127.0.0.1"),
    ],
)
def test_the_nearest_address_that_is_no_proxy(chain: str, address: str) -> None:
    assert seen({"X-Forwarded-For": chain}).address == address


def test_an_untrusted_peer_is_not_believed_and_warned_of_once(
    lines: list[structlog.typing.EventDict],
) -> None:
    proxies = Proxies(TRUSTED)
    headers = CIMultiDict({"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "https"})
    for _ in range(3):
        client = proxies.client("203.0.113.5", "http", "a", headers)
        assert client == Client("203.0.113.5", "http", "a", True)
    [line] = lines
    assert line["log_level"] == "warning"
    assert "trusted_proxies" in line["hint"]


def test_forwarded_alone_also_says_that_there_is_a_proxy() -> None:
    assert seen({"Forwarded": "for=10.0.0.1"}, "203.0.113.5").outside
    assert not seen({"X-Forwarded-For": "10.0.0.1"}).outside


@pytest.mark.parametrize(
    "headers",
    [
        {"Forwarded": "for=203.0.113.9"},
        {"X-Forwarded-Proto": "https"},
        {"X-Forwarded-Host": "crm.example.com"},
        {"X-Forwarded-For": ""},
        {"X-Forwarded-For": "unknown"},
        {"X-Forwarded-For": "127.0.0.1, unknown"},
    ],
)
def test_a_proxy_that_names_nobody_does_not_lend_its_own_address(headers: dict[str, str]) -> None:
    client = seen(headers)
    assert (client.address, client.outside) == ("127.0.0.1", True)


def test_what_one_subscriber_holds() -> None:
    assert share_of("203.0.113.5") == "203.0.113.5"
    assert share_of("::ffff:203.0.113.5") == "203.0.113.5"
    assert share_of("2001:db8:1:2:3:4:5:6") == share_of("2001:db8:1:2::") == "2001:db8:1:2::/64"
    assert share_of("unix") == "unix"
    assert parse("1.2.3.4.5") is None

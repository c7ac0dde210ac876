"""Check the form of a receiver's URL; outbox.sending.egress_guard checks its addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Literal
from urllib.parse import urlsplit

import idna
from yarl import URL

from outbox.sending.addresses import Rules, may_dial, port_may_open
from outbox.sending.request_targets import target_of

REFUSED_ADDRESS = "deliveries to this address are not allowed"
"""The start of every refusal by address: none reveals anything about the internal network."""
LONGEST_URL = 2048
LONGEST_HOST = 253
SHAPE = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?]*)[^\s]*", re.S)
BRACKETED = re.compile(r"\[(?P<literal>[^\]]*)\](?::(?P<port>.*))?", re.S)
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
PORT = re.compile(r"[1-9][0-9]{0,4}")
JOINERS = frozenset("\u200c\u200d")
DEFAULT_PORTS = {"http": 80, "https": 443}


Kind = Literal["spelling", "form", "http", "address"]


class Refused(Exception):
    """A URL or an address that deliveries may not use.

    The texts of all kinds but `address` name the fix to the owner; a text has a place `{name}` for
    each of `values`.
    """

    def __init__(self, text: str, kind: Kind, **values: Any) -> None:
        super().__init__(text.format(**values) if values else text)
        self.text = text
        self.kind: Kind = kind
        self.values: Mapping[str, Any] = values


@dataclass(frozen=True, slots=True)
class Target:
    """A valid URL and its parts."""

    url: URL
    """As it is requested."""
    scheme: str
    host: str
    """Lower-case ASCII; an IPv6 literal has no brackets."""
    port: int
    literal: bool
    path: str
    """The path and query of the request line."""


def check_url(url: str, rules: Rules) -> Target:
    """Check a receiver's URL as typed, without a name look-up. Raise Refused."""
    match = _shape(url, rules)
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise _misspelt(_start(rules))
    if scheme == "http" and not rules.allow_http:
        raise Refused(
            f"plain http is not allowed; use https, or allow it with {rules.http_setting}", "http"
        )
    text, port, literal = _host(match["authority"], DEFAULT_PORTS[scheme])
    host = text if literal else _name(text)
    if not port_may_open(port, rules):
        raise _misspelt(
            f"port {port} is not allowed; use 443 or a port above 1023, or allow the "
            f"address with this port with {rules.allow_setting}"
        )
    dialled = (host,) if literal else _loopback(host)
    if dialled and not any(may_dial(address, port, rules) for address in dialled):
        raise refused(rules)
    path = target_of(url)
    parsed = URL(url)
    sent = URL(f"{scheme}://{parsed.host_port_subcomponent}{path}", encoded=True)
    # Other software that reads the URL must find the same host and port.
    if any(server != (host, port, scheme) for server in map(_read, (parsed, sent))):
        raise _misspelt("this URL is ambiguous; write it in its standard form")
    return Target(sent, scheme, host, port, literal, path)


def same_server(url: str, second: str) -> bool:
    """Return whether two URLs have the same scheme, host and port."""
    try:
        mine, theirs = (
            (parts.scheme, parts.hostname, parts.port or DEFAULT_PORTS.get(parts.scheme))
            for parts in map(urlsplit, (url, second))
        )
    except ValueError:
        return False
    return mine == theirs


def _read(url: URL) -> tuple[str | None, int | None, str]:
    return url.raw_host, url.port, url.scheme


def _misspelt(text: str) -> Refused:
    return Refused(text, "spelling")


def refused(rules: Rules) -> Refused:
    """Return the single refusal by address, whatever the reason."""
    return Refused(f"{REFUSED_ADDRESS}; allow it with {rules.allow_setting}", "address")


def _start(rules: Rules) -> str:
    return f"the URL must start with {'http:// or ' if rules.allow_http else ''}https://"


def _shape(url: str, rules: Rules) -> re.Match[str]:
    if len(url) > LONGEST_URL:
        raise _misspelt(f"the URL can have at most {LONGEST_URL} characters")
    if "\\" in url or any(c.isspace() or not c.isprintable() for c in url):
        raise _misspelt("the URL must not contain spaces, control characters or backslashes")
    match = SHAPE.fullmatch(url)
    if match is None:
        raise _misspelt(_start(rules))
    if "#" in url:
        raise _misspelt("the URL must not have a #fragment")
    if "@" in match["authority"]:
        raise _misspelt(
            "the URL must not contain a user name or password; use a custom Authorization header"
        )
    return match


def _host(authority: str, default_port: int) -> tuple[str, int, bool]:
    """Return the host, the port and whether the host is an IP literal."""
    if authority.startswith("["):
        match = BRACKETED.fullmatch(authority)
        if match is None:
            raise _misspelt("write an IPv6 address as [2606:4700::1111]")
        return _ipv6(match["literal"]), _port(match["port"], default_port), True
    host, colon, port = authority.partition(":")
    if ":" in port:
        raise _misspelt("write an IPv6 address in brackets")
    if not host:
        raise _misspelt("the URL has no host")
    try:
        literal = str(IPv4Address(host)) == host
    except AddressValueError:
        literal = False
    return host, _port(port if colon else None, default_port), literal


def _port(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not PORT.fullmatch(text) or int(text) > 65535:
        raise _misspelt("the port must be a number from 1 to 65535")
    return int(text)


def _ipv6(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError:
        raise _misspelt("the text in brackets is not an IPv6 address") from None
    if address.scope_id is not None:
        raise _misspelt("the IPv6 address must not have a zone")
    # Dotted endings have two spellings, and Python versions differ on the canonical one.
    if address.compressed != text.lower() and "." not in text:
        raise _misspelt(f"write this address as [{address.compressed}]")
    return text.lower()


def _name(text: str) -> str:
    """Return the host name in lower-case ASCII, if all software reads it the same way."""
    typed = text.lower()
    if "%" in typed:
        raise _misspelt("the host must not be percent-encoded")
    if typed.endswith("."):
        raise _misspelt("the host must not end with a dot")
    name = typed
    if not typed.isascii():
        try:
            read = URL(f"https://{typed}/")
            name = read.raw_host or ""
            again = read.host
        except ValueError:
            again = None
        if again != typed:
            raise _standard(again)
    labels = name.split(".")
    # The last label decides whether software reads the host as a number: the URL standard, 3.5.
    if NUMERIC.fullmatch(labels[-1]):
        raise _misspelt("write an IPv4 address as four decimal numbers, such as 192.0.2.7")
    if len(name) > LONGEST_HOST or not all(LABEL.fullmatch(label) for label in labels):
        raise _misspelt("this is not a valid host name")
    if "xn--" in name and (form := _again(name)) != name:
        raise _standard(form)
    return name


def _standard(form: str | None) -> Refused:
    """Return the refusal of a host name with another standard form; None for one without."""
    text = "the host name must be in its standard form"
    if form is None:
        return _misspelt(f"{text}, and has none")
    return Refused(f"{text}: {{form}}", "form", form=form)


def _again(name: str) -> str | None:
    """Return a name after decoding and encoding; None when either fails or changes nothing."""
    try:
        unicode = URL(f"https://{name}/").host or ""
        if JOINERS.isdisjoint(unicode):
            return None if unicode == name else URL(f"https://{unicode}/").raw_host
        # IDNA allows joiners beside letters that need them; URL refuses to read them.
        return idna.encode(unicode).decode()
    except ValueError:
        return None


def _loopback(name: str) -> tuple[str, ...]:
    """Return the addresses of names that always mean this machine: RFC 6761, section 6.3."""
    if name == "localhost" or name.endswith(".localhost"):
        return ("127.0.0.1", "::1")
    return ()

"""Defines the format of a store's hostname and its normal form."""

import re
from typing import Any

from gateway.records.values.emails import ascii_domain
from gateway.records.values.formats import Format, Wrong, string
from gateway.records.values.patterns import HOST, ORIGIN

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}")
_PORT = re.compile(r":[0-9]{1,5}\Z")
LONGEST = 253
LONGEST_ORIGIN = LONGEST + 20


def normal(text: str) -> str | None:
    """Return a hostname in lower case, without port and final dot, IDN as punycode; else None."""
    if len(text) > 2 * LONGEST:
        return None
    # IDNA writes the dot of other scripts as this one.
    name = ascii_domain(_PORT.sub("", text.strip())).removesuffix(".")
    return name if len(name) <= LONGEST and _NAME.fullmatch(name) else None


def hostname() -> Format:
    """Return the format of a hostname, stored in its normal form."""

    def check(value: Any) -> str:
        name = normal(string(value, LONGEST + 10))
        if name is None:
            raise Wrong("invalid_hostname", "Send a hostname such as shop.example.com.")
        return name

    return Format(
        check, {"type": "string", "minLength": 1, "maxLength": LONGEST + 10, "pattern": HOST}
    )


def origin() -> Format:
    """Return the format of a web origin: scheme, host and port if it is not the default."""

    def check(value: Any) -> str:
        sent = string(value, LONGEST_ORIGIN).lower()
        scheme, separator, rest = sent.partition("://")
        name = normal(rest)
        if scheme not in ("http", "https") or not separator or name is None:
            raise Wrong("invalid_origin", "Send an origin such as https://shop.example.com.")
        port = _PORT.search(rest)
        default = {"http": ":80", "https": ":443"}[scheme]
        shown = "" if port is None or port[0] == default else port[0]
        return f"{scheme}://{name}{shown}"

    return Format(
        check, {"type": "string", "minLength": 8, "maxLength": LONGEST_ORIGIN, "pattern": ORIGIN}
    )

"""The page of a payment provider that takes the payment of an order: its address in a store."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.records.values.formats import Format, Wrong, string

PLACEHOLDERS = ("orderId", "orderNumber", "token")
_LABEL = "[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_HOST = rf"https://{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_NAMES = "|".join(PLACEHOLDERS)
# The same text in the schema, in the syntax that ECMA-262 and Python share.
PATTERN = rf"^(?=.*\{{token\}}){_HOST}[/?](?:[!-z|~]|\{{(?:{_NAMES})\}})*$"
_PATTERN = re.compile(PATTERN)
_BEGIN = re.compile(rf"^{_HOST}[/?]")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


def template() -> Format:
    """Return the format of the template of an address."""

    def check(value: Any) -> str:
        sent = string(value, 2048)
        if _PATTERN.fullmatch(sent) is None:
            raise Wrong("invalid_template", _fault(sent))
        return sent

    return Format(check, {"type": "string", "maxLength": 2048, "pattern": PATTERN})


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return the address of a template; the values need no escape in a URL."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def _fault(sent: str) -> str:
    known = "{orderId}, {orderNumber} and {token}"
    if _BEGIN.match(sent) is None:
        return "Send an https URL such as https://pay.example.com/{orderNumber}?token={token}."
    unknown = [name for name in _PLACEHOLDER.findall(sent) if name not in PLACEHOLDERS]
    if unknown:
        return f"There is no placeholder {{{unknown[0][:40]}}}; use {known}."
    if "{token}" not in sent:
        return "Put {token} into the URL; with it the page knows the order and its amount."
    return f"Send visible ASCII characters, and braces only around {known}."

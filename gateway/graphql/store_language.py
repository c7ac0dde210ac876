"""Says the messages of the storefront in the language of the store.

The code says them in English. The catalogue has each under `shop.…`: its English text is the
pattern of the message, and the other languages repeat the values that stand in it. A value called
`amount…` is in centavos, one called `quoted…` stands in quotation marks.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from gateway import texts
from gateway.domain.storefront.stores.store_directory import Directory
from gateway.records.record import Record
from gateway.texts import Texts

AREA = "shop."
SECONDS = 1.0
_VALUE = re.compile(r"\{(\w+)\}")
_FIELD = re.compile(r"^(?P<field>[\w.\[\]]{1,100}): (?P<rest>.+)$", re.DOTALL)
_AROUND = (
    (
        "shop.more_errors",
        re.compile(r"(?P<rest>.+); (?P<many>\d+) more errors? in details\.", re.S),
    ),
    ("shop.and_removed", re.compile(r"(?P<rest>.+\.) It was removed\.", re.S)),
)
"""Messages that have another one in them."""
_HOSTNAME = re.compile(r'\bhostname\s*:\s*"([^"\\]{1,253})"')
_VARIABLE = re.compile(r"\bhostname\s*:\s*\$(\w{1,100})")
Say = Callable[[str], str]
"""Returns a message in the language of a store."""


def english(message: str) -> str:
    """Return a message as it is."""
    return message


def say_of(code: str) -> Say:
    """Return what says messages in a language of gateway.texts."""
    if code == texts.CODES[0]:
        return english
    own = texts.of(code)
    return lambda message: _said(own, message)


async def language_of(
    stores: Iterable[Record], directory: Directory, query: str, variables: Mapping[str, Any]
) -> str:
    """Return the language of the `stores` of an operation, or of those that it names.

    It is English where the store is unknown, and where several stores have several languages. The
    languages of the browser do not matter: a shop is in one language.
    """
    codes = {str(store["language"]) for store in stores}
    for hostname in () if codes else _named(query, variables):
        try:
            async with asyncio.timeout(SECONDS):
                store, _ = await directory.find(hostname)
        except Exception:  # noqa: BLE001, S112 - the error itself is told all the same, in English
            continue
        codes.add(str(store["language"]))
    return codes.pop() if len(codes) == 1 else texts.CODES[0]


def _named(query: str, variables: Mapping[str, Any]) -> list[str]:
    """Return the hostnames in an operation whose resolvers have not asked for the store."""
    sent = [variables.get(name) for name in _VARIABLE.findall(query)]
    sent += [value.get("hostname") for value in variables.values() if isinstance(value, dict)]
    found = [one for one in sent if isinstance(one, str)]
    return (found or _HOSTNAME.findall(query))[:2]


def _said(own: Texts, message: str) -> str:
    key = _exact().get(message)
    if key is not None:
        return own(key)
    for key, pattern in _patterns():
        field = pattern.fullmatch(message)
        if field is not None:
            return own(key, **_filled(own, field.groupdict()))
    for key, pattern in _AROUND:
        field = pattern.fullmatch(message)
        if field is not None:
            rest = _rest(own, field["rest"], sentence=key != _AROUND[0][0])
            return own(key, **{**field.groupdict(), "rest": rest})
    field = _FIELD.match(message)
    return f"{field['field']}: {_said(own, field['rest'])}" if field else message


def _rest(own: Texts, rest: str, *, sentence: bool) -> str:
    """Return a message that stands in another one, there with or without its full stop."""
    return _said(own, rest) if sentence else _said(own, f"{rest}.").removesuffix(".")


def _filled(own: Texts, values: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the values of a message as the language writes them."""
    shown: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith("amount") and value.removeprefix("-").isdecimal():
            shown[name] = own.money(int(value) / 100)
        elif name.startswith("quoted") and value[:1] in "'\"" and len(value) > 1:
            shown[name] = value[1:-1]
        else:
            shown[name] = value
    return shown


@cache
def _exact() -> Mapping[str, str]:
    """Return the keys of the messages without values, by their English text."""
    return {text: key for key, text in _english() if not _VALUE.search(text)}


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    """Return the keys and patterns of the messages with values, those with most text first."""
    found = [(key, text) for key, text in _english() if _VALUE.search(text)]
    found.sort(key=lambda one: len(_VALUE.sub("", one[1])), reverse=True)
    return [(key, re.compile(_pattern(text), re.DOTALL)) for key, text in found]


def _english() -> list[tuple[str, str]]:
    source = texts.of(texts.CODES[0])
    around = {key for key, _ in _AROUND}
    return [(key, source(key)) for key in source if key.startswith(AREA) and key not in around]


def _pattern(text: str) -> str:
    pieces = _VALUE.split(text)
    return "".join(
        f"(?P<{piece}>.+?)" if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)
    )

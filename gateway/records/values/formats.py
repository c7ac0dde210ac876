"""Defines what the format of a value is, and those of text, booleans and lists.

Objects are in `nested`, other values in modules of their own. It is one module because the kinds of
text share their patterns, and lists are mostly of text.

A pattern here is the same text in the check and in the schema, in the syntax that ECMA-262 and
Python share.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import phonenumbers
from msgspec.json import decode

from gateway.records.errors import Fault
from gateway.records.values.emails import character_name, invisible
from gateway.records.values.patterns import (
    BLANK,
    CODE,
    EMAIL,
    PHONE,
    SLUG,
    URL,
    VISIBLE,
    WEBSITE,
)
from gateway.records.values.schemas import ID
from gateway.records.values.strictjson import dumps
from outbox.ids import is_id

LONG = 65_535
_VISIBLE = re.compile(rf"[^{BLANK}]")
_EMAIL = re.compile(EMAIL)
_WEBSITE = re.compile(WEBSITE)
_URL = re.compile(URL)
_SLUG = re.compile(SLUG)
_CODE = re.compile(CODE)
_PHONE = re.compile(PHONE)
# The usual spellings of valid numbers; without +55 the area 55 needs the library.
_AREA = r"(?:[14689][1-9]|2[12478]|3[1-578]|5[13-5]|7[13-579])"
_BRAZILIAN = re.compile(
    rf"(?:\+55 ?|(?!\(?55))\(?({_AREA})\)? ?([2-57][0-9]{{3}}|9[0-9]{{4}})[- ]?([0-9]{{4}})",
    re.ASCII,
)
_ID = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
# PostgreSQL's text cannot store U+0000.
_NO_NUL = {"pattern": r"^[^\u0000]*$"}


class Wrong(ValueError):
    """The error of a value that does not fit its format. `code` names the rule, `text` the fix.

    `at` is the place inside the value, such as `[3].quantity`; `more` are further faults. The text
    has a place `{name}` for each of `values`.
    """

    def __init__(
        self, code: str, text: str, at: str = "", more: Sequence["Wrong"] = (), **values: Any
    ) -> None:
        self.code = code
        self.at = at
        self.more = more
        self._fault = Fault("", code, text, values)
        super().__init__(self.message)

    @property
    def message(self) -> str:
        """The text in English with its values."""
        return self._fault.message

    def faults(self, field: str) -> list[Fault]:
        """Return this and the further errors as faults of a field."""
        return [replace(one._fault, field=f"{field}{one.at}") for one in (self, *self.more)]

    def beneath(self, place: str) -> list["Wrong"]:
        """Return this and the further errors as those of a part of a value, at its place."""
        return [
            Wrong(one.code, one._fault.text, f"{place}{one.at}", **one._fault.values)
            for one in (self, *self.more)
        ]


def together(wrongs: Sequence[Wrong]) -> Wrong:
    """Return several errors of one value as the first of them, with the others."""
    first, *more = wrongs
    return Wrong(first.code, first._fault.text, first.at, more, **first._fault.values)


@dataclass(frozen=True, eq=False, slots=True)
class Format:
    """The check of a value, its stored form and its JSON form.

    A typed value is a whole number of centavos, of thousandths or of microseconds (or a dates.Day),
    a text, a boolean: the same for every door. `check` converts it to the stored value or raises
    Wrong. `read` converts the JSON form to the typed value, `show` the stored value to the JSON
    form; each is None where the two are equal. `schema` is the JSON Schema of request values,
    `shown` of response values where they are narrower.
    """

    check: Callable[[Any], Any]
    schema: Mapping[str, Any]
    show: Callable[[Any], Any] | None = None
    shown: Mapping[str, Any] | None = None
    read: Callable[[Any], Any] | None = None
    parts: Callable[[Any, bool], Any] | None = None
    """For a list or an object, in place of `check`: checks each part, in JSON form or typed."""
    is_json: bool = False
    """Whether the stored value is the text of the JSON form, which `show` parses."""

    def accept(self, value: Any, *, from_json: bool = True) -> Any:
        """Return the stored value of a request value, in its JSON form or typed. Raises Wrong."""
        if self.parts is not None:
            return self.parts(value, from_json)
        return self.check(value if self.read is None or not from_json else self.read(value))


def text(most: int, least: int = 0) -> Format:
    """Return the format of free text, stored unchanged."""

    def check(value: Any) -> str:
        return string(value, most, least)

    return Format(check, {"type": "string", "minLength": least, "maxLength": most, **_NO_NUL})


def title(most: int = 200) -> Format:
    """Return the format of text with at least one visible character."""

    def check(value: Any) -> str:
        sent = string(value, most, 1)
        if _VISIBLE.search(sent) is None:
            raise Wrong("blank", "Send at least one visible character.")
        return sent

    schema = {"type": "string", "minLength": 1, "maxLength": most, "pattern": VISIBLE}
    return Format(check, schema)


def one_of(*allowed: str) -> Format:
    """Return the format of one of a closed list of words."""
    words = ", ".join(allowed)

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise Wrong("not_allowed", f"Send one of: {words}.")
        return value

    return Format(check, {"type": "string", "enum": list(allowed)})


def email() -> Format:
    """Return the format of a mailbox address: dot-atom @ host name, non-ASCII letters allowed."""

    def check(value: Any) -> str:
        sent = string(value, 254)
        if hidden := invisible(sent):
            raise Wrong(
                "invalid_email",
                "Remove this character from the address: {character}.",
                character=character_name(hidden),
            )
        if _EMAIL.fullmatch(sent) is None or sent.index("@") > 64:
            raise Wrong("invalid_email", "Send an e-mail address such as maria@example.com.")
        return sent

    schema = {"type": "string", "maxLength": 254, "pattern": EMAIL}
    return Format(check, schema)


def phone() -> Format:
    """Return the format of a phone number in any spelling; `e164` converts it."""

    def check(value: Any) -> str:
        sent = string(value, 40)
        if _PHONE.fullmatch(sent) is None:
            raise Wrong("invalid_phone", "Send 3 to 40 of the characters 0-9+()-.x and space.")
        return sent

    return Format(check, {"type": "string", "minLength": 3, "maxLength": 40, "pattern": PHONE})


def e164(sent: str) -> str | None:
    """Return the E.164 form of a number, Brazilian without a country code; None if not valid."""
    usual = _BRAZILIAN.fullmatch(sent)
    return "+55" + "".join(usual.groups()) if usual else _parsed(sent)


@lru_cache(maxsize=1024)
def _parsed(sent: str) -> str | None:
    try:
        number = phonenumbers.parse(sent, "BR")
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def website() -> Format:
    """Return the format of an http(s) URL or a bare host name."""

    def check(value: Any) -> str:
        sent = string(value, 2048)
        if _WEBSITE.fullmatch(sent) is None:
            raise Wrong(
                "invalid_website", "Send an http or https URL or a host name such as example.com."
            )
        return sent

    return Format(check, {"type": "string", "maxLength": 2048, "pattern": WEBSITE})


def url() -> Format:
    """Return the format of an http(s) URL."""

    def check(value: Any) -> str:
        sent = string(value, 2048)
        if _URL.fullmatch(sent) is None:
            raise Wrong("invalid_url", "Send an http or https URL.")
        return sent

    return Format(check, {"type": "string", "maxLength": 2048, "pattern": URL})


def slug() -> Format:
    """Return the format of a slug: lower-case words with hyphens between them."""

    def check(value: Any) -> str:
        sent = string(value, 200)
        if _SLUG.fullmatch(sent) is None:
            raise Wrong("invalid_slug", "Send lower-case letters and digits, such as coffee-1-kg.")
        return sent

    return Format(check, {"type": "string", "maxLength": 200, "pattern": SLUG})


def code(most: int) -> Format:
    """Return the format of a code that people type: visible characters without blanks."""

    def check(value: Any) -> str:
        sent = string(value, most, 1)
        if _CODE.fullmatch(sent) is None:
            raise Wrong("invalid_code", "Send visible characters without blanks.")
        return sent

    return Format(check, {"type": "string", "minLength": 1, "maxLength": most, "pattern": CODE})


def boolean() -> Format:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Wrong("wrong_type", "Send true or false.")
        return value

    # SQLite returns 0 and 1.
    return Format(check, {"type": "boolean"}, bool)


def id_of(noun: str) -> Format:
    """Return the format of a record's id; the transaction checks that the record exists."""

    def check(value: Any) -> str:
        sent = string(value)
        if not is_id(sent):
            raise missing(noun)
        return sent.lower()

    return Format(check, _ID, None, ID)


def missing(noun: str) -> Wrong:
    """Return the error of a reference that is malformed, unknown or another owner's.

    It is the same in each case, so it does not reveal which ids exist.
    """
    return Wrong("invalid_reference", f"There is no {noun} of yours with this id.")


def string(value: Any, most: int = 40, least: int = 0) -> str:
    """Return text of `least` to `most` characters that every engine can store. Raises Wrong."""
    if type(value) is not str and not isinstance(value, str):
        raise Wrong("wrong_type", "Send a string.")
    size = len(value)
    if size > most:
        raise Wrong("too_long", "Send at most {most} characters.", most=most)
    if size < least:
        text = f"Send at least {{least}} character{'s' * (least > 1)}."
        raise Wrong("too_short", text, least=least)
    # The REST door's parser refuses these before; other doors have parsers of their own.
    if "\0" in value or not (value.isascii() or _is_utf8(value)):
        raise Wrong("invalid_characters", "Send text without U+0000 and lone surrogates.")
    return value


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def ids_of(noun: str, most: int = 100) -> Format:
    """Return the format of a list of ids without repeats, stored as JSON text."""
    return list_of(id_of(noun), most)


def tags() -> Format:
    """Return the format of up to 50 short labels without repeats, stored as JSON text."""
    return list_of(title(64), 50)


def several(item: Format, value: Any, from_json: bool, most: int, least: int = 0) -> list[Any]:
    """Return the stored form of each of `least` to `most` items. Raises Wrong."""
    if not isinstance(value, list):
        raise Wrong("wrong_type", "Send an array.")
    if len(value) > most:
        raise Wrong("too_many", "Send at most {most} items.", most=most)
    if len(value) < least:
        raise Wrong("too_few", f"Send at least {{least}} item{'s' * (least > 1)}.", least=least)
    return items(item, value, from_json)


def list_of(item: Format, most: int, least: int = 0) -> Format:
    """Return the format of a list without repeats, stored as JSON text."""

    def parts(value: Any, from_json: bool) -> str:
        return dumps(list(dict.fromkeys(several(item, value, from_json, most, least))))

    schema: dict[str, Any] = {"type": "array", "items": item.schema, "maxItems": most}
    if least:
        schema["minItems"] = least
    return list_by(parts, schema, item)


def composite(
    parts: Callable[[Any, bool], Any],
    schema: Mapping[str, Any],
    show: Callable[[Any], Any] | None = None,
    shown: Mapping[str, Any] | None = None,
    *,
    is_json: bool = False,
) -> Format:
    """Return the format of a list or an object that checks its parts one by one."""

    def check(value: Any) -> Any:
        return parts(value, False)

    return Format(check, schema, show, shown, parts=parts, is_json=is_json)


def list_by(parts: Callable[[Any, bool], str], schema: Mapping[str, Any], item: Format) -> Format:
    """Return the format of a list that `parts` checks, stored as JSON text of its items."""
    shown = None if item.shown is None else {**schema, "items": item.shown}
    return composite(parts, schema, _show_each(item), shown, is_json=item.show is None)


def _show_each(item: Format) -> Callable[[str], Any]:
    """Return a function from a list's JSON text to its items in their JSON form."""
    show = item.show
    if show is None:
        return decode
    return lambda text: [show(value) for value in decode(text)]


def items(item: Format, values: Sequence[Any], from_json: bool) -> list[Any]:
    """Return the stored form of each item. Raises Wrong with the places of up to 20 faults."""
    stored = []
    wrongs: list[Wrong] = []
    for position, value in enumerate(values):
        try:
            stored.append(item.accept(value, from_json=from_json))
        except Wrong as wrong:
            wrongs += wrong.beneath(f"[{position}]")
            if len(wrongs) >= 20:
                break
    if wrongs:
        raise together(wrongs)
    return stored

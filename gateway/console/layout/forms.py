"""Reads urlencoded UTF-8 forms of limited size; other formats are refused."""

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from aiohttp import web

from gateway.records.errors import Refusal
from gateway.server.http import bodies

URLENCODED = "application/x-www-form-urlencoded"
MOST_FIELDS = 1_500


class Form:
    """The fields of a form."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """Return the first value of a field, or an empty text when it is missing."""
        return next(iter(self.all(name)), "")

    def pairs(self) -> Sequence[tuple[str, str]]:
        """Return all fields with their values, the values of a field together."""
        return [(name, value) for name, values in self._fields.items() for value in values]

    def all(self, name: str) -> Sequence[str]:
        """Return all values of a field."""
        return self._fields.get(name, ())


async def read(request: web.Request) -> Form:
    """Read the form of a request.

    Raise unsupported_media_type, payload_too_large or validation_error.
    """
    name, charset = bodies.media_type(request.headers.get("Content-Type", ""))
    if name != URLENCODED or charset not in ("utf-8", "utf8"):
        raise Refusal("unsupported_media_type", f"Send the form as {URLENCODED} in UTF-8.")
    try:
        body = await bodies.plain(request)
    except Refusal as refusal:
        if refusal.code == "payload_too_large":
            raise _too_large() from None
        raise
    return parse(body)


def parse(body: bytes) -> Form:
    """Parse an urlencoded body. Raise payload_too_large or validation_error."""
    if body.count(b"&") >= MOST_FIELDS:
        raise _too_large()
    fields: dict[str, list[str]] = {}
    try:
        for name, value in parse_qsl(body.decode(), keep_blank_values=True, errors="strict"):
            fields.setdefault(name, []).append(value)
    except UnicodeDecodeError:
        raise Refusal("validation_error", "The form must be encoded in UTF-8.") from None
    return Form(fields)


def _too_large() -> Refusal:
    return Refusal("payload_too_large", "error.too_large")

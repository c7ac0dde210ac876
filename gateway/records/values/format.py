"""Defines the Format of a value: its check, its stored form and its JSON form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Wrong(ValueError):
    """The error of a value that does not fit its format. `code` names the rule, `message` the fix.

    `at` is the place inside the value, such as `[3].quantity`; `more` are further faults.
    """

    def __init__(self, code: str, message: str, at: str = "", more: Sequence["Wrong"] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.more = more


Read = Callable[["Format", Any], Any]
"""A door's conversion: (the format, the value in the door's form) → the typed value."""


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
    parts: Callable[[Any, Read], Any] | None = None
    """For a list or an object, in place of `check`: checks each part, converted by the door."""
    is_json: bool = False
    """Whether the stored value is the text of the JSON form, which `show` parses."""

    def accept(self, value: Any, read: Read) -> Any:
        """Return the stored value of a request value. Raises Wrong."""
        if self.parts is not None:
            return self.parts(value, read)
        return self.check(read(self, value))


def typed(_: Format, value: Any) -> Any:
    """Return the value unchanged: the Read of callers with typed values."""
    return value


def of_json(form: Format, value: Any) -> Any:
    """Convert a JSON value to the typed value: the Read of doors with JSON."""
    return value if form.read is None else form.read(value)

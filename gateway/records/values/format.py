"""Defines the Format of a value: its check, its stored form and its JSON form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.records.errors import Fault


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

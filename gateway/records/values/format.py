"""What a format is: how a value is checked and kept, and its JSON form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class Wrong(ValueError):
    """A value does not fit its format. `code` names the rule, `message` the fix.

    `at` says where inside the value, such as `[3].quantity`; `more` are further faults of it.
    """

    def __init__(self, code: str, message: str, at: str = "", more: Sequence["Wrong"] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.more = more


Read = Callable[["Format", Any], Any]
"""How a door reads a plain value: (its format, the value as the door has it) → the typed value."""


@dataclass(frozen=True, eq=False, slots=True)
class Format:
    """How a value is checked and kept, and its JSON form.

    A typed value is a whole number of centavos, of thousandths or of microseconds (or a dates.Day),
    a text, a boolean: the same for every door. `check` takes it to the stored value and raises
    Wrong. `read` makes it of its JSON form, None where that is the typed value; `show` takes the
    stored value to its JSON form, None where they are the same. `schema` is the JSON Schema of the
    form that is sent, `shown` of the one that is shown where that is narrower.
    """

    check: Callable[[Any], Any]
    schema: Mapping[str, Any]
    show: Callable[[Any], Any] | None = None
    shown: Mapping[str, Any] | None = None
    read: Callable[[Any], Any] | None = None
    parts: Callable[[Any, Read], Any] | None = None
    """For a list or an object, in place of `check`: checks each part, read as the door reads it."""

    def accept(self, value: Any, read: Read) -> Any:
        """The stored value of what a door was sent. Raises Wrong."""
        if self.parts is not None:
            return self.parts(value, read)
        return self.check(read(self, value))


def typed(_: Format, value: Any) -> Any:
    """The Read of a caller whose values are typed already."""
    return value


def of_json(wanted: Format, value: Any) -> Any:
    """The Read of a door whose values are JSON."""
    return value if wanted.read is None else wanted.read(value)

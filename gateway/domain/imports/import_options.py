"""The choices of an import: how its file writes numbers and dates, and what its faults do."""

from collections.abc import Mapping

from msgspec import Struct, structs

from gateway.records.errors import Fault
from gateway.records.record import refusal
from gateway.records.values import written_dates, written_numbers

LENIENT, STRICT = "lenient", "strict"
REFUSE, LAST = "refuse", "last"
CHOICES: Mapping[str, tuple[str, ...]] = {
    "numbers": written_numbers.FORMS,
    "dates": written_dates.FORMS,
    "mode": (LENIENT, STRICT),
    "duplicates": (REFUSE, LAST),
}
"""The words of each option, the default first."""


class Options(Struct, frozen=True, omit_defaults=True):
    """The options of an import, each one of CHOICES."""

    numbers: str = written_numbers.AUTO
    dates: str = written_dates.AUTO
    mode: str = LENIENT
    """Whether a line with a fault in an optional field is imported without this field."""
    duplicates: str = REFUSE
    """What becomes of a line whose id or key a line before has: it is refused, or it updates."""


DEFAULT = Options()


def options_of(sent: Mapping[str, str | None]) -> Options:
    """Return the options among the values that a client has sent. Raises validation_error."""
    faults = []
    for name, allowed in CHOICES.items():
        if (sent.get(name) or allowed[0]) not in allowed:
            text = f"Send one of: {', '.join(allowed[:-1])} or {allowed[-1]}."
            faults.append(Fault(name, "invalid_parameter", text))
    if faults:
        raise refusal(faults)
    return structs.replace(DEFAULT, **{name: sent[name] for name in CHOICES if sent.get(name)})

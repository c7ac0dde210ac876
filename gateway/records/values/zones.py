"""Lists the names of the IANA time zones, the same on every machine, and defines their format."""

from functools import cache
from importlib.resources import files
from typing import Any

from gateway.records.values.formats import Format, Wrong, string
from gateway.records.values.patterns import ZONE

DEFAULT = "America/Sao_Paulo"
"""The time zone of an account that has not chosen one."""


@cache
def names() -> frozenset[str]:
    """Return every zone that an account can choose."""
    # The package's list, because /usr/share/zoneinfo differs between machines: it lacks some zones
    # and adds others (the local time, copies in posix/ and right/).
    listed = (files("tzdata") / "zones").read_text("utf-8").split()
    return frozenset(listed) - {"Factory"}


def zone() -> Format:
    """Return the format of the name of a time zone."""

    def check(value: Any) -> str:
        sent = string(value, 64)
        if sent not in names():
            raise Wrong("invalid_timezone", "Send an IANA time zone such as America/Sao_Paulo.")
        return sent

    return Format(check, {"type": "string", "maxLength": 64, "pattern": ZONE})

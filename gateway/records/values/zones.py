"""Lists the names of the IANA time zones, the same on every machine."""

from functools import cache
from importlib.resources import files

DEFAULT = "America/Sao_Paulo"
"""The time zone of an account that has not chosen one."""


@cache
def names() -> frozenset[str]:
    """Return every zone that an account can choose."""
    # The package's list, because /usr/share/zoneinfo differs between machines: it lacks some zones
    # and adds others (the local time, copies in posix/ and right/).
    listed = (files("tzdata") / "zones").read_text("utf-8").split()
    return frozenset(listed) - {"Factory"}

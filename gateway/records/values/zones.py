"""The IANA time zones by name, the same on every machine."""

from functools import cache
from importlib.resources import files

DEFAULT = "America/Sao_Paulo"
"""Where an account's days begin and end until it says otherwise."""


@cache
def names() -> frozenset[str]:
    """Every zone that an account may be in."""
    # The package's list: what a machine has under /usr/share/zoneinfo differs, in what it leaves
    # out and in what it adds (its own local time, copies in posix/ and right/).
    listed = (files("tzdata") / "zones").read_text("utf-8").split()
    return frozenset(listed) - {"Factory"}

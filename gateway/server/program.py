"""Names what this program is: its installed version, and the roles of a process."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Literal

Role = Literal["api", "worker", "all"]
ROLES: tuple[Role, ...] = ("api", "worker", "all")


@cache
def program_version() -> str:
    """Return the installed version, 0 when the package is not installed."""
    try:
        return version("carteiro")
    except PackageNotFoundError:  # run from a source tree
        return "0"

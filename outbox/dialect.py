"""One SQL text for two engines: the small differences that a marker or a placeholder can carry."""

import re
from functools import lru_cache
from typing import Literal

_OWN = {
    "sqlite": re.compile(r"/\*sqlite\s(.*?)\*/", re.S),
    "postgres": re.compile(r"/\*postgres\s(.*?)\*/", re.S),
}
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.S)
_DOLLAR = re.compile(r"\$(\d+)")


@lru_cache(maxsize=4096)
def translate(sql: str, engine: Literal["sqlite", "postgres"]) -> str:
    """`sql` as `engine` takes it: its own markers opened, comments dropped, `$1` → `?1` on SQLite.

    Text is never interpolated here; values travel as parameters.
    """
    sql = _COMMENT.sub("", _OWN[engine].sub(r"\1", sql)).strip()
    # A bare $1 with a sequence of values is an error in Python's sqlite3 from 3.14 on.
    return _DOLLAR.sub(r"?\1", sql) if engine == "sqlite" else sql

"""Finds keys of very many parts in a text of TOML, before a parser reads it.

The parser of the standard library takes time by the square of the parts of a key such as `a.b.c`,
and by the parts of a table's heading for each key below it: most of a minute for 32 KiB.
"""

import re

MOST_PARTS = 8
SKIPPED = re.compile(
    r'"""(?:[^\\"]|\\(?:.|\Z)|"(?!""))*+(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*+(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\(?:.|\Z))*+(?:"|\n|\Z)'
    r"|'[^'\n]*+(?:'|\n|\Z)|(?P<comment>#[^\n]*+)",
    re.DOTALL,
)
"""Texts and comments of TOML. One that does not end goes on to where the parser gives up too."""
PART = r"\.[ \t]*+[\w-]++[ \t]*+"
LONG_KEY = re.compile(f"(?:{PART}){{{MOST_PARTS}}}")


def has_long_key(text: str) -> bool:
    """Return whether a key has more than MOST_PARTS parts, up to where a parser gives up."""
    outside = SKIPPED.sub(lambda found: "" if found["comment"] else "s", text)
    return LONG_KEY.search(outside) is not None

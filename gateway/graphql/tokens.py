"""Counts the tokens and the nested brackets of a document, before anything parses it.

The parser calls itself for each bracket, so a document that nests deeper than the stack must not
reach it.
"""

import re

from gateway.records.errors import Refusal

CHARACTERS = 65_536
TOKENS = 1_000
BRACKETS = 60
"""Levels of nested brackets of any kind: selection sets, lists, objects and arguments."""

# Possessive, so that no text makes it try the same characters twice.
_TOKEN = re.compile(
    r"""(?:[\s,\ufeff]|\#[^\n\r]*+)*+
    (?: (?P<open>[{\[(]) | (?P<close>[}\])]) | [!$&:=@|] | \.\.\.
      | [A-Za-z_0-9.+-]++
      | \"\"\"(?:[^"\\]|\\(?:\"\"\")?+|\"(?!\"\"))*+\"\"\"
      | \"(?:[^"\\\n\r]|\\.)*+\" )""",
    re.VERBOSE,
)


def must_be_short(text: str) -> None:
    """Raise query_too_complex for a text with too many characters, tokens or nested brackets."""
    if len(text) > CHARACTERS:
        raise too_complex("tokens", f"The document must not exceed {CHARACTERS} characters.")
    match = _TOKEN.match
    place = level = 0
    for _ in range(TOKENS):
        found = match(text, place)
        if found is None:
            # The end, or a text that the parser refuses here.
            return
        place = found.end()
        if found["open"] is not None:
            level += 1
            if level > BRACKETS:
                raise too_complex(
                    "depth", f"The document must not nest more than {BRACKETS} brackets."
                )
        elif found["close"] is not None:
            level -= 1
    if match(text, place) is not None:
        raise too_complex("tokens", f"The document must not exceed {TOKENS} tokens.")


def too_complex(limit: str, message: str) -> Refusal:
    """Return the refusal of a document beyond a limit."""
    return Refusal("query_too_complex", message, facts={"limit": limit})

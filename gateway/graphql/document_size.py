"""Counts the tokens and the nested brackets of a document, before anything parses it.

The parser calls itself for each bracket, so a document that nests deeper than the stack must not
reach it.
"""

import re

from gateway.records.errors import Refusal

CHARACTERS = 32_768
TOKENS = 1_000
"""Comments count too, as they do for the parser."""
ARGUMENTS = 500
"""Tokens inside of parentheses: an error of such a value takes long to print."""
TEXT = 10_000
"""Characters of all strings in a document: the lexer reads them one by one."""
BRACKETS = 60
"""Levels of nested brackets of any kind: selection sets, lists, objects and arguments."""

# Possessive, so that no text makes it try the same characters twice.
_TOKEN = re.compile(
    r"""[\s,\ufeff]*+
    (?: \#[^\n\r]*+ | (?P<open>[{\[(]) | (?P<close>[}\])]) | [!$&:=@|] | \.\.\.
      | [A-Za-z_0-9.+-]++
      | (?P<text> \"\"\"(?:[^"\\]|\\(?:\"\"\")?+|\"(?!\"\"))*+\"\"\"
      | \"(?!\"\")(?:[^"\\\n\r]|\\.)*+\" ) )""",
    re.VERBOSE,
)


def must_be_short(text: str) -> None:
    """Raise query_too_complex for a text with too many characters, tokens or nested brackets."""
    if len(text) > CHARACTERS:
        raise too_complex("tokens", f"The document must not exceed {CHARACTERS} characters.")
    match = _TOKEN.match
    place = level = arguments = characters = 0
    outer: list[int] = []
    for _ in range(TOKENS):
        token = match(text, place)
        if token is None:
            # The end, or a text that the parser refuses, such as a string that never ends.
            characters += len(text) - place
            break
        place = token.end()
        arguments += bool(outer)
        bracket = token["open"]
        if bracket is not None:
            level += 1
            if bracket == "(":
                outer.append(level)
            if level > BRACKETS:
                raise too_complex(
                    "depth", f"The document must not nest more than {BRACKETS} brackets."
                )
        elif token["close"] is not None:
            if outer and outer[-1] == level:
                outer.pop()
            level -= 1
        elif token["text"] is not None:
            characters += len(token["text"])
        if arguments > ARGUMENTS:
            raise too_complex(
                "tokens", f"The arguments must not exceed {ARGUMENTS} tokens; use variables."
            )
    else:
        if match(text, place) is not None:
            raise too_complex("tokens", f"The document must not exceed {TOKENS} tokens.")
    if characters > TEXT and not text[place:].isspace():
        raise too_complex(
            "tokens", f"The strings must not exceed {TEXT} characters; use variables."
        )


def too_complex(limit: str, message: str) -> Refusal:
    """Return the refusal of a document beyond a limit."""
    return Refusal("query_too_complex", message, facts={"limit": limit})

"""Reads a request that somebody has pasted: as HTTP text, or as a curl command."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

REQUEST_LINE = re.compile(r"[A-Z]{3,7} \S+( HTTP/[0-9.]+)?")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
HEADER_WORDS = ("-H", "--header")
BODY_WORDS = ("-d", "--data", "--data-raw", "--data-binary")
# Words of a shell and their parts, as shlex reads them; shlex copies a word for each character.
WORD = re.compile(r"""(?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++""", re.DOTALL)
PART = re.compile(r"""([^\s'"\\]+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
BLANKS = " \t\r\n"


class Unreadable(ValueError):
    """The text is no request; the message names the line."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """A request: its headers by their names in lowercase, and its body."""

    headers: Mapping[str, str]
    body: bytes


def read(text: str) -> Pasted:
    """Return the request. A line break after the body comes from pasting and is dropped.

    Raise Unreadable.
    """
    text = text.replace("\r\n", "\n").strip("\n")
    if text.lstrip().startswith("curl "):
        return _of_curl(text)
    headers: dict[str, str] = {}
    lines = text.split("\n")
    for place, line in enumerate(lines):
        # Traces of curl and of other tools begin the lines of a request with this mark.
        line = line.removeprefix("> ").strip()
        if not line:
            return Pasted(headers, "\n".join(lines[place + 1 :]).encode("utf-8", "replace"))
        if line.startswith("{"):
            return Pasted(headers, "\n".join(lines[place:]).encode("utf-8", "replace"))
        header = HEADER.fullmatch(line)
        if header is not None:
            headers[header[1].lower()] = header[2]
        elif place or not REQUEST_LINE.fullmatch(line):
            raise Unreadable(line[:80])
    return Pasted(headers, b"")


def split(text: str) -> Iterator[str]:
    """Yield the words of a command, without their quotes. Raise Unreadable."""
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        word = WORD.match(text, at)
        end = word.end() if word else at
        if word is None or (end < len(text) and text[end] not in BLANKS):
            raise Unreadable(text[end : end + 80])
        yield "".join(map(_unquoted, PART.finditer(word[0])))
        at = end


def _unquoted(part: re.Match[str]) -> str:
    if part[3]:
        return ESCAPED.sub(r"\1", part[3])
    return part[1] or part[2] or part[4] or ""


def _of_curl(text: str) -> Pasted:
    words = list(split(text))
    headers: dict[str, str] = {}
    body = ""
    for word, value in pairwise(words):
        if word in HEADER_WORDS:
            header = HEADER.fullmatch(value)
            if header is None:
                raise Unreadable(value[:80])
            headers[header[1].lower()] = header[2]
        elif word in BODY_WORDS:
            body = value
    return Pasted(headers, body.encode("utf-8", "replace"))

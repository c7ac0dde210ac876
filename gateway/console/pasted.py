"""Reads a request that somebody has pasted: as HTTP text, or as a command of curl."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

REQUEST_LINE = re.compile(r"[A-Z]{3,7} \S+( HTTP/[0-9.]+)?")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
HEADER_WORDS = ("-H", "--header")
BODY_WORDS = ("-d", "--data", "--data-raw", "--data-binary")


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


def _of_curl(text: str) -> Pasted:
    try:
        words = shlex.split(text)
    except ValueError as why:
        raise Unreadable(str(why)) from None
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

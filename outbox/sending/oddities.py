"""Say what is odd about a response that counts, and why something is no response."""

import re
from collections.abc import Sequence
from typing import Literal

LARGEST_HEAD = 64 * 1024
"""Bytes that a receiver may send before the head of its final response is complete."""
MOST_INTERIM = 100
LONGEST_LINE = 8190
USUAL_LINES = 128
MOST_LINES = 1000
"""Headers that are stored."""

NOT_HTTP = "not an HTTP/1.1 response"
NOTES = {
    "early": "the response came before the request",
    "blank": "blank lines come before the status line",
    "version": "the version of the response is not HTTP/1.1",
    "status_line": "the status line is not in its standard form",
    "line_end": "a line does not end with CR LF",
    "folded": "a header is folded over several lines",
    "colon": "there is a space before the colon of a header",
    "no_colon": "a header line has no colon",
    "name": "a header name has characters that are not allowed",
    "control": "a header has control characters",
    "long_line": f"a header has more than {LONGEST_LINE:,} bytes",
    "many": f"there are more than {USUAL_LINES} headers",
    "too_many": f"of more than {MOST_LINES:,} headers only the first are stored",
    "too_long": f"the headers have more than {LARGEST_HEAD // 1024} KiB",
    "cut_off": "the connection closed before the headers were complete",
    "lengths": "there are several Content-Length values",
    "length": "the Content-Length is not a number",
    "both": "there are Content-Length and Transfer-Encoding",
    "coding": "the Transfer-Encoding is not chunked",
    "chunk": "a chunk of the body is not valid",
    "short": "the connection closed before the body was complete",
    "more": "there are bytes after the response",
    "repeated": "it ended an idle connection, so the request is sent again on a new one",
    "token": "it refused the access token, so the request is sent again with a new one",
}
"""What may be odd about a response whose status decides, as the log says it."""
BETWEEN = "; "
"""Separates notes in the log; no note has it."""
Note = Literal[
    "early", "blank", "version", "status_line", "line_end", "folded", "colon", "no_colon", "name",
    "control", "long_line", "many", "too_many", "too_long", "cut_off", "lengths", "length", "both",
    "coding", "chunk", "short", "more", "repeated", "token",
]  # fmt: skip


def joined(notes: Sequence[str]) -> str:
    """Return notes as the log has them."""
    return BETWEEN.join(notes)


def separated(text: str | None) -> list[str]:
    """Return the notes of a text in the log."""
    return text.split(BETWEEN) if text else []


REFUSALS = {
    "tls": "the receiver speaks TLS, so the URL needs https",
    "preface": "it is the start of an HTTP/2 connection",
    "http2": "it is HTTP/2",
    "ssh": "it comes from an SSH server",
    "mail": "it comes from a mail or FTP server",
    "echo": "the request itself came back",
    "markup": "it is HTML or XML without a status line (HTTP/0.9)",
    "json": "it is JSON without a status line (HTTP/0.9)",
}
STARTS = (
    ("tls", re.compile(rb"[\x14-\x17]\x03[\x00-\x04]")),
    ("preface", re.compile(rb"PRI \* HTTP/2")),
    ("http2", re.compile(rb"\x00..[\x04\x07].\x00\x00\x00\x00", re.DOTALL)),
    ("ssh", re.compile(rb"SSH-")),
    ("mail", re.compile(rb"[245][0-9]{2}[ -]")),
    ("echo", re.compile(rb"POST \S+ HTTP/")),
    ("markup", re.compile(rb"\s*<")),
    ("json", re.compile(rb"\s*[{\[]")),
)
TOO_MUCH = f"no final response within {LARGEST_HEAD // 1024} KiB and {MOST_INTERIM} interim ones"


def not_http(start: bytes) -> str:
    """Return why no HTTP/1 response begins with these bytes."""
    for name, pattern in STARTS:
        if pattern.match(start):
            return f"{NOT_HTTP}: {REFUSALS[name]}"
    return f"{NOT_HTTP}: it starts with {_shown(start)}"


def bad_status_line(start: bytes) -> str:
    """Return why a line that begins with HTTP/ has no readable status."""
    return f"{NOT_HTTP}: no status in “{_text(start)}”"


def _shown(start: bytes) -> str:
    text = _text(start)
    if text and text.isascii():
        return f"“{text}”"
    return f"the bytes {start[:8].hex(' ')}"


def _text(start: bytes) -> str:
    line = re.split(rb"[\r\n]", start, maxsplit=1)[0][:30].decode("latin-1")
    return "".join(one if one.isprintable() else "\ufffd" for one in line)

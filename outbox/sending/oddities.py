"""Say what is odd about a response that counts, and why something is no response."""

import re
from collections.abc import Sequence
from typing import Literal

LARGEST_HEAD = 64 * 1024
"""Bytes that a receiver may send before the head of its final response is complete."""
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
}
"""What may be odd about a response whose status decides, as the log says it."""
BETWEEN = "; "
"""Separates notes in the log; no note has it."""
Note = Literal[
    "early", "blank", "version", "status_line", "line_end", "folded", "colon", "no_colon", "name",
    "control", "long_line", "many", "too_many", "too_long", "cut_off", "lengths", "length", "both",
    "coding", "chunk", "short", "more", "repeated",
]  # fmt: skip


def joined(notes: Sequence[str]) -> str | None:
    """Return notes as the log has them; None without one."""
    return BETWEEN.join(notes) or None


def separated(text: str | None) -> list[str]:
    """Return the notes of a text in the log."""
    return text.split(BETWEEN) if text else []


KNOWN = (
    (re.compile(rb"[\x14-\x17]\x03[\x00-\x04]"), "the receiver speaks TLS; use an https URL"),
    (re.compile(rb"PRI \* HTTP/2"), "the start of an HTTP/2 connection"),
    (re.compile(rb"\x00..[\x04\x07].\x00\x00\x00\x00", re.DOTALL), "HTTP/2"),
    (re.compile(rb"SSH-"), "an SSH server"),
    (re.compile(rb"(POST|GET) \S+ HTTP/", re.IGNORECASE), "the request itself came back"),
    (re.compile(rb"[245][0-9]{2}[ -]"), "a mail or FTP server"),
    (re.compile(rb"\s*<"), "HTML or XML without a status line (HTTP/0.9)"),
    (re.compile(rb"\s*[{\[]"), "JSON without a status line (HTTP/0.9)"),
)


def not_http(start: bytes) -> str:
    """Return why no HTTP/1 response begins with these bytes."""
    for pattern, what in KNOWN:
        if pattern.match(start):
            return f"{NOT_HTTP}: {what}"
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

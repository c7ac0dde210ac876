"""The head of a response, and the quick way to read a complete and simple one."""

import re
from typing import NamedTuple

Header = tuple[str, str]

LARGEST_PLAIN = 16 * 1024
NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
HEAD = re.compile(
    rf"HTTP/1\.1 ([2-5][0-9][0-9]) [\t\x20-\x7e]*\r\n((?:{NAME}:[\t\x20-\x7e]*\r\n){{1,64}})"
)
# Linear also for many blanks within a value.
LINE = re.compile(r"([^:\r\n]+):[\t ]*+((?:[^\r\n]*[^\t\r\n ])?)[\t ]*+\r\n")
LENGTH = re.compile(r"[0-9]{1,5}")
NO_BODY = frozenset({"204", "304"})


class Head(NamedTuple):
    """The head of a final response."""

    status: int
    headers: list[Header]
    retry_after: str | None


def read_plain(data: bytes) -> tuple[Head, bytes] | None:
    """Parse a complete and simple response into head and body; return None for any other.

    Most responses are one small packet with a Content-Length, and the general reader takes longer
    for one. It handles everything unusual.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0 or len(data) > LARGEST_PLAIN:
        return None
    try:
        text = data[: end + 2].decode("ascii")
    except UnicodeDecodeError:
        return None
    match = HEAD.fullmatch(text)
    if match is None or match[1] in NO_BODY:
        return None
    headers = LINE.findall(match[2])
    fields = {name.lower(): value for name, value in headers}
    length = fields.get("content-length", "")
    if (
        len(fields) < len(headers)
        or not LENGTH.fullmatch(length)
        or int(length) != len(data) - end - 4
        or "transfer-encoding" in fields
        or "upgrade" in fields
        or fields.get("connection", "keep-alive").lower() != "keep-alive"
    ):
        return None
    return Head(int(match[1]), headers, fields.get("retry-after")), data[end + 4 :]

"""Read one HTTP/1 response from the bytes of a connection.

The status decides an attempt, so everything with a readable status line is read, as other clients
do. What RFC 9112 does not allow becomes a note, and after a response with a note the connection
closes: none of its bytes can be taken for the response to another request.

It is one module because a head, its framing and its body share the bytes that are not read yet.
"""

import re
from typing import Literal

from outbox.sending.oddities import (
    LARGEST_HEAD,
    LONGEST_LINE,
    MOST_INTERIM,
    MOST_LINES,
    NOTES,
    TOO_MUCH,
    USUAL_LINES,
    Note,
    bad_status_line,
    not_http,
)
from outbox.sending.plain_response import LINE, NAME, Head, Header

NO_BODY = frozenset({204, 304})
SWITCHING_PROTOCOLS = 101

LARGEST_BODY = 16 * 1024
LONGEST_SIZE_LINE = 4096
MOST_TOKENS = 64

STRICT = re.compile(
    rf"HTTP/1\.1 ([0-9]{{3}}) [\t\x20-\x7e\x80-\xff]*\r\n"
    rf"((?:{NAME}:[\t\x20-\x7e\x80-\xff]*\r\n)*)\r\n".encode("latin-1")
)
DECIDING = ("connection", "content-length", "retry-after", "transfer-encoding")
IMPORTANT = re.compile(
    rf"\n({'|'.join(DECIDING)})[ \t]*+:[ \t]*+((?:[^\r\n]*[^\t\r\n ])?)[ \t]*+(?=[\r\n])".encode(),
    re.IGNORECASE,
)
STATUS_LINE = re.compile(
    rb"HTTP/([0-9](?:\.[0-9])?)([ \t]+)([0-9]{3})(?=[ \t\r\n]|\Z)([^\n]*)", re.IGNORECASE
)
BLANK = re.compile(rb"(?:\r?\n)+")
HEAD_END = re.compile(rb"\n\r?\n")
TOKEN = re.compile(NAME)
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
WHOLE_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r]*)?(\r?)")
ANY_LENGTH = re.compile(r"[0-9]{1,18}")


class Reading:
    """Reads one response: feed it the bytes of the connection as they arrive."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.body = bytearray()
        self.refusal: str | None = None
        """Why there can be no response; never beside a head."""
        self.ended = False
        """Whether nothing more is read."""
        self.complete = False
        """Whether the body arrived as a whole."""
        self.closes = False
        """Whether the connection must not carry another request."""
        self._notes: dict[Note, None] = {}
        self._data = bytearray()
        self._searched = 0
        self._before = 0
        """Bytes of interim responses."""
        self._interim: int | None = None
        self._interims = 0
        self._framing: Literal["length", "chunks", "close"] = "close"
        self._left = 0
        """Bytes of the body, or of its chunk, that have not arrived."""
        self._place: Literal["size", "chunk", "end", "trailers"] = "size"

    @property
    def notes(self) -> list[str]:
        """Return what was odd."""
        return [NOTES[note] for note in self._notes]

    def odd(self, note: Note) -> None:
        """Note a deviation from the standard; the connection must close."""
        self._notes[note] = None
        self.closes = True

    def feed(self, data: bytes) -> None:
        """Read these bytes, the next ones of the connection."""
        if self.ended:
            if self.complete:
                self.odd("more")
            return
        self._data += data
        while self.head is None and self._read_head():
            pass
        if self.head is not None and not self.ended:
            self._read_body()

    def lose(self, *, cleanly: bool) -> None:
        """End with the connection, which the receiver has closed `cleanly` or not."""
        if self.head is None:
            self._decide_early("cut_off")
        elif not self.ended:
            self.complete = self._framing == "close" and cleanly
            if not self.complete:
                self.odd("short")
            self._end()

    def lacks(self) -> str | None:
        """Return what was missing of a response when the connection was lost; None if all."""
        if self._interim is not None and not self._data:
            return f"only an interim response ({self._interim}) came before the connection closed"
        return None

    def _end(self) -> None:
        self.ended = True
        if not self.complete:
            self.closes = True
        elif self._data:
            self.odd("more")
        self._data.clear()

    def _read_head(self) -> bool:
        """Read the next head; return whether there may be another one behind it."""
        data = self._data
        if data[:1] <= b"\r" and (blank := BLANK.match(data)):
            self.odd("blank")
            self._before += blank.end()
            del data[: blank.end()]
            self._searched = 0
        if not data.startswith(b"HTTP/") and not _may_start(bytes(data[:5])):
            self._refuse(not_http(bytes(data[:80])))
            return False
        end, room = HEAD_END.search(data, self._searched), LARGEST_HEAD - self._before
        if end is None or end.end() > room:
            self._searched = max(len(data) - 2, 0)
            if b"\n" in data and STATUS_LINE.match(data) is None:
                self._refuse(bad_status_line(bytes(data[:80])))
            elif len(data) > room:
                del data[max(room, 0) :]
                if not self._decide_early("too_long"):
                    self._refuse(TOO_MUCH)
            return False
        head = bytes(data[: end.end()])
        del data[: end.end()]
        self._searched = 0
        self._before += len(head)
        self._begin(head)
        return self.head is None and self.refusal is None

    def _refuse(self, why: str) -> None:
        self.refusal = why
        self.ended = self.closes = True
        self._data.clear()

    def _decide_early(self, note: Note) -> bool:
        """Decide by a status line of a head that has no end; return whether there is one."""
        data = bytes(self._data)
        lines, end, _ = data.rpartition(b"\n")
        match = STATUS_LINE.match(data)
        if not end or match is None or _is_interim(int(match[3])):
            return False
        self._data.clear()
        self._begin(lines + b"\n\n", guessed=True)
        self.odd(note)
        self._end()
        return True

    def _begin(self, head: bytes, *, guessed: bool = False) -> None:
        """Take the lines of a head, and find out how its body ends."""
        strict = STRICT.fullmatch(head)
        version = b"1.1"
        if strict is not None:
            status = int(strict[1])
            if strict[2].count(b"\n") > MOST_LINES:
                headers = self._tolerant(strict[2], guessed=False)
            else:
                headers = LINE.findall(strict[2].decode("utf-8", "replace"))
        else:
            match = STATUS_LINE.match(head)
            if match is None:
                self._refuse(bad_status_line(head[:80]))
                return
            version, status = match[1], int(match[3])
            if not guessed:
                self._judge_status_line(match)
                if head.endswith(b"\n\n"):
                    self.odd("line_end")
            headers = self._tolerant(head[match.end() + 1 :], guessed=guessed)
        if _is_interim(status):
            self._interim = status
            self._interims += 1
            if self._interims > MOST_INTERIM:
                self._refuse(TOO_MUCH)
            return
        if len(headers) > USUAL_LINES and "too_many" not in self._notes:
            self.odd("many")
        if len(head) > LONGEST_LINE and any(len(n) + len(v) > LONGEST_LINE for n, v in headers):
            self.odd("long_line")
        if version != b"1.1":
            self.odd("version")
        deciding: dict[str, list[str]] = {}
        for name, value in headers:
            folded = name.lower()
            if folded in DECIDING:
                deciding.setdefault(folded, []).append(value)
        if not 100 <= status < 600 or "close" in _tokens(deciding.get("connection")):
            self.closes = True
        retry_after = deciding.get("retry-after")
        self.head = Head(status, headers, retry_after[0] if retry_after else None)
        self._frame(status, deciding)

    def _judge_status_line(self, match: re.Match[bytes]) -> None:
        rest = match[4].removesuffix(b"\r")
        usual = match[0].startswith(b"HTTP/") and match[2] == b" " and rest[:1] == b" "
        if not usual or CONTROL.search(rest.decode("latin-1")):
            self.odd("status_line")
        if not match[4].endswith(b"\r"):
            self.odd("line_end")

    def _tolerant(self, block: bytes, *, guessed: bool) -> list[Header]:
        """Return the headers of lines that are not all as they should be."""
        pairs: list[tuple[bytes, bytes]] = []
        *lines, rest = block.split(b"\n", MOST_LINES)
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if not line:
                continue
            if line is raw and not guessed:
                self.odd("line_end")
            if line[:1] in (b" ", b"\t"):
                self.odd("folded")
                if pairs:
                    name, value = pairs[-1]
                    pairs[-1] = name, (value + b" " + line.strip()).strip()
                    continue
            name, colon, value = line.partition(b":")
            if not colon:
                self.odd("no_colon")
                continue
            stripped = name.strip(b" \t")
            if len(stripped) < len(name):
                self.odd("colon")
            if not TOKEN.fullmatch(stripped.decode("latin-1")):
                self.odd("name")
            if CONTROL.search(value.decode("latin-1")):
                self.odd("control")
            pairs.append((stripped, value.strip(b" \t")))
        if rest:
            self.odd("too_many")
            pairs += IMPORTANT.findall(b"\n" + rest)
        return [(n.decode("latin-1"), v.decode("utf-8", "replace")) for n, v in pairs]

    def _frame(self, status: int, fields: dict[str, list[str]]) -> None:
        """Find out where the body ends (RFC 9112, section 6.3)."""
        if status in NO_BODY or status == SWITCHING_PROTOCOLS:
            self.complete = status != SWITCHING_PROTOCOLS
            self._end()
            return
        lengths = _tokens(fields.get("content-length"))
        if "transfer-encoding" in fields:
            if "content-length" in fields:
                self.odd("both")
            codings = [
                coding for coding in _tokens(fields["transfer-encoding"]) if coding != "identity"
            ]
            if codings != ["chunked"]:
                self.odd("coding")
            if codings[-1:] == ["chunked"]:
                self._framing = "chunks"
                return
            if codings:
                lengths = []
        if "content-length" in fields:
            if len(lengths) > 1:
                self.odd("lengths")
            if not all(map(ANY_LENGTH.fullmatch, lengths)):
                self.odd("length")
            elif lengths and len(set(map(int, lengths))) == 1:
                self._framing, self._left = "length", int(lengths[0])
        self.closes = self.closes or self._framing == "close"

    def _read_body(self) -> None:
        if self._framing == "chunks":
            self._read_chunks()
        elif self._framing == "length":
            part = self._data[: self._left]
            self._take(part)
            del self._data[: len(part)]
            if not self.ended and not self._left:
                self.complete = True
                self._end()
        else:
            self._take(self._data)
            self._data.clear()

    def _take(self, part: bytearray) -> None:
        """Store these bytes of the body; end when there are more than are stored."""
        self._left -= len(part)
        self.body += part[: LARGEST_BODY + 1 - len(self.body)]
        if len(self.body) > LARGEST_BODY:
            self._end()

    def _read_chunks(self) -> None:
        data, at, size = self._data, 0, len(self._data)
        while not self.ended:
            if self._place == "chunk":
                part = data[at : at + self._left]
                at += len(part)
                self._take(part)
                if self._left or self.ended:
                    break
                self._place = "end"
            if self._place == "end":
                if data[at : at + 2] == b"\r\n":
                    at += 2
                elif data[at : at + 1] == b"\n":
                    self.odd("line_end")
                    at += 1
                elif at == size or data[at:] == b"\r":
                    break
                else:
                    self._spoil()
                    break
                self._place = "size"
            elif self._place == "size" and (usual := WHOLE_SIZE.match(data, at)):
                # Most chunks arrive as a whole.
                start, length = usual.end(), int(usual[1], 16)
                end = start + length
                if length and data[end : end + 2] == b"\r\n":
                    self._take(data[start:end])
                    at = end + 2
                    continue
            end = data.find(b"\n", at)
            if end < 0:
                if size - at > LONGEST_SIZE_LINE:
                    self._spoil()
                break
            line, at = data[at:end], end + 1
            if self._place == "trailers":
                if not line or line == b"\r":
                    del data[:at]
                    self.complete = True
                    self._end()
                    return
                self._before += len(line)
                if self._before > 2 * LARGEST_HEAD:
                    self._spoil()
                continue
            match = CHUNK_SIZE.fullmatch(line)
            if match is None or len(line) > LONGEST_SIZE_LINE:
                self._spoil()
                break
            if not match[2]:
                self.odd("line_end")
            self._left = int(match[1], 16)
            self._place = "chunk" if self._left else "trailers"
        del data[:at]

    def _spoil(self) -> None:
        self.odd("chunk")
        self._end()


def _may_start(start: bytes) -> bool:
    """Return whether a response may begin with these bytes, of which more may follow."""
    return start in (b"", b"\r") or (len(start) <= 5 and b"HTTP/".startswith(start.upper()))


def _is_interim(status: int) -> bool:
    return 100 <= status < 200 and status != SWITCHING_PROTOCOLS


def _tokens(values: list[str] | None) -> list[str]:
    return [one.strip().lower() for value in values or () for one in value.split(",", MOST_TOKENS)]

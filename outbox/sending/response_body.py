"""Show the stored body of a response as text: undo its codings, and decode its characters.

The log has the bytes as they arrived. All work here is bounded, whatever a receiver sends. `br`
and `zstd` are undone where their libraries are installed (the extra `codings`).
"""

import codecs
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

Header = tuple[str, str]
Undone = tuple[bytes, bool]
"""Decoded bytes, and whether they are the whole."""

MOST_TEXT = 32 * 1024
"""Bytes of a decoded body that are shown."""
MOST_CODINGS = 3
STEP = 512
"""Coded bytes at a time: what precedes a fault is shown."""
LARGEST_WINDOW_LOG = 23
"""The memory that `zstd` may ask for on the web: RFC 9659."""

CHARSET = re.compile(r';\s*charset\s*=\s*"?([a-z0-9_-]{1,20})', re.IGNORECASE)
# Python has other codecs, which are no charsets or take long.
KNOWN = re.compile(
    r"utf-(8|16|16le|16be)|iso-8859-[0-9]{1,2}|windows-125[0-8]|koi8-[ru]|macintosh"
    r"|gb18030|big5|euc-jp|iso-2022-jp|cp(437|850|852|866|874|932|949)"
)
ONE_BYTE = re.compile(r"iso8859-[0-9]+|cp125[0-8]|koi8-[ru]|mac-roman|cp(437|850|852|866|874)")
"""Python's names of charsets in which a byte is a character."""
LABELS = {
    "utf8": "utf-8", "us-ascii": "windows-1252", "ascii": "windows-1252",
    "iso-8859-1": "windows-1252", "latin1": "windows-1252", "gb2312": "gb18030", "gbk": "gb18030",
    "shift_jis": "cp932", "euc-kr": "cp949", "utf-16": "utf-16le",
}  # fmt: skip
"""What browsers take some labels for."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16le"),
    (codecs.BOM_UTF16_BE, "utf-16be"),
)


class BodyText(NamedTuple):
    """The text of a body."""

    text: str
    exact: bool
    """Whether it shows every stored byte; those that no character stands for are U+FFFD."""
    cut: bool
    """Whether the body has more, which is not stored or not shown."""


def stored_headers(text: str | None) -> list[Header]:
    """Return the headers of a response from the log; none when they are damaged.

    An error would hide the attempt, and come again in each search that meets it.
    """
    try:
        return msgspec.json.decode(text or "[]", type=list[Header])
    except (ValueError, RecursionError):
        return []


def show(headers: Sequence[Header], body: bytes, *, truncated: bool) -> BodyText:
    """Return the text of a stored body; `truncated`: the log does not have its end."""
    cut, exact = truncated, True
    for coding in _codings(headers):
        undo = CODINGS.get(coding)
        data, whole = (b"", False) if undo is None or not body else undo(body)
        if not data and not whole:
            # Some senders name a coding that the body does not have.
            break
        body, cut, exact = data[:MOST_TEXT], cut or not whole, exact and whole
    charset, start = _charset(headers, body)
    if ONE_BYTE.fullmatch(charset):
        text, _ = codecs.charmap_decode(body, "strict", _table(charset))
        return BodyText(text, exact and "\ufffd" not in text, cut)
    for errors in ("strict", "replace"):
        decoder = codecs.getincrementaldecoder(charset)(errors)
        with suppress(UnicodeDecodeError):
            return BodyText(
                decoder.decode(body[start:], not cut), exact and errors == "strict", cut
            )
    raise AssertionError("every byte can be replaced")


def _codings(headers: Sequence[Header]) -> list[str]:
    """Return the codings of a body, the last one first; none when there are too many."""
    codings = [
        coding.strip().lower()
        for wanted in ("content-encoding", "transfer-encoding")
        for name, value in headers
        if name.lower() == wanted
        for coding in value.split(",", MOST_CODINGS + 1)
    ]
    codings = [coding for coding in codings if coding not in ("", "identity", "chunked")]
    return codings[::-1] if len(codings) <= MOST_CODINGS else []


def _charset(headers: Sequence[Header], body: bytes) -> tuple[str, int]:
    """Return the codec of a text, and how many bytes at its start mark that codec."""
    for mark, charset in MARKS:
        if body.startswith(mark):
            return charset, len(mark)
    told = [value for name, value in headers if name.lower() == "content-type"]
    match = CHARSET.search(told[0]) if told else None
    label = match[1].lower() if match else "utf-8"
    label = LABELS.get(label, label)
    if KNOWN.fullmatch(label):
        with suppress(LookupError):
            return codecs.lookup(label).name, 0
    return "utf-8", 0


@cache
def _table(charset: str) -> str:
    """Return the characters of the 256 bytes; Python's own decoder is slow where some have none."""
    # Browsers take the rest of this one for control characters.
    rest = "latin-1" if charset == "cp1252" else "ascii"
    known = (bytes([one]).decode(charset, "ignore") for one in range(256))
    return "".join(text or bytes([one]).decode(rest, "replace") for one, text in enumerate(known))


def _gzip(data: bytes) -> Undone:
    return _inflated(data, 31)


def _deflate(data: bytes) -> Undone:
    # Some senders leave out the wrapper that the standard demands.
    wrapped = len(data) > 1 and data[0] & 15 == 8 and int.from_bytes(data[:2], "big") % 31 == 0
    return _inflated(data, 15 if wrapped else -15)


def _inflated(data: bytes, wbits: int) -> Undone:
    out = bytearray()
    while data:
        decoder = zlib.decompressobj(wbits)
        at = 0
        while not decoder.eof:
            part = data[at : at + STEP]
            at += STEP
            try:
                out += decoder.decompress(part, MOST_TEXT + 1 - len(out))
            except zlib.error:
                return bytes(out), False
            if not part or len(out) > MOST_TEXT:
                return bytes(out), False
        data = decoder.unused_data + data[at:]
        # Another member may follow; anything else is padding.
        if wbits != 31 or data[:2] != b"\x1f\x8b":
            break
    return bytes(out), True


def _brotli(data: bytes) -> Undone:
    library, out = _first("brotli", "brotlicffi"), bytearray()
    if library is None:
        return b"", False
    decoder = library.Decompressor()
    # TypeError: versions before 1.2 cannot bound their output.
    with suppress(library.error, TypeError):
        for at in range(0, len(data), STEP):
            part = data[at : at + STEP]
            while part or not decoder.can_accept_more_data():
                out += decoder.process(part, output_buffer_limit=MOST_TEXT)
                part = b""
                if len(out) > MOST_TEXT:
                    return bytes(out), False
        return bytes(out), decoder.is_finished()
    return bytes(out), False


def _zstd(data: bytes) -> Undone:
    library, out = _first("compression.zstd", "backports.zstd"), bytearray()
    if library is None:
        return b"", False
    limit = {library.DecompressionParameter.window_log_max: LARGEST_WINDOW_LOG}
    decoder = library.ZstdDecompressor(options=limit)
    with suppress(library.ZstdError):
        for at in range(0, len(data), STEP):
            out += decoder.decompress(data[at : at + STEP], MOST_TEXT + 1 - len(out))
            if decoder.eof or len(out) > MOST_TEXT:
                break
        return bytes(out), decoder.eof
    return bytes(out), False


@cache
def _first(*names: str) -> Any:
    """Return the first of these libraries that is installed."""
    for name in names:
        with suppress(ImportError):
            return import_module(name)
    return None


CODINGS: dict[str, Callable[[bytes], Undone]] = {
    "gzip": _gzip, "x-gzip": _gzip, "deflate": _deflate, "br": _brotli, "zstd": _zstd,
}  # fmt: skip

"""Stored bodies of responses as text: codings, charsets, and what a receiver can make of them."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from importlib import import_module
from typing import Any

import pytest

from outbox.sending.response_body import MOST_TEXT, BodyText, show
from tests.support.requirements import need

TEXT = "não há mais cartões, ação"
UTF8 = TEXT.encode()
GZIP = gzip.compress(UTF8, mtime=0)
RAW = zlib.compressobj(wbits=-15)
RAW_DEFLATE = RAW.compress(UTF8) + RAW.flush()
BOMB = gzip.compress(bytes(10_000_000), mtime=0)
NOISE = random.Random(7).randbytes(3000).hex()
LONG = gzip.compress(NOISE.encode(), mtime=0)


def shown(body: bytes, *headers: str, truncated: bool = False) -> BodyText:
    pairs = [(name, value) for name, _, value in (header.partition(": ") for header in headers)]
    return show(pairs, body, truncated=truncated)


CASES: tuple[tuple[bytes, tuple[str, ...], str], ...] = (
    (b"", (), ""),
    (UTF8, (), TEXT),
    (UTF8, ("Content-Encoding: identity",), TEXT),
    (GZIP, ("Content-Encoding: gzip",), TEXT),
    (GZIP, ("content-encoding: X-GZIP",), TEXT),
    (GZIP + GZIP, ("Content-Encoding: gzip",), TEXT * 2),
    (GZIP + bytes(9), ("Content-Encoding: gzip",), TEXT),
    (GZIP, ("Transfer-Encoding: gzip, chunked",), TEXT),
    (zlib.compress(UTF8), ("Content-Encoding: deflate",), TEXT),
    (RAW_DEFLATE, ("Content-Encoding: deflate",), TEXT),
    (gzip.compress(GZIP), ("Content-Encoding: gzip, gzip",), TEXT),
    (gzip.compress(RAW_DEFLATE), ("Content-Encoding: deflate", "Content-Encoding: gzip"), TEXT),
    # Senders that name a coding and do not use it.
    (UTF8, ("Content-Encoding: gzip",), TEXT),
    (UTF8, ("Content-Encoding: utf-8",), TEXT),
    (UTF8, ("Content-Encoding: ",), TEXT),
    (GZIP, ("Content-Encoding: aws-chunked, gzip",), TEXT),
    (UTF8, ("Content-Type: text/xml; charset=utf-8,charset=utf-8",), TEXT),
    (b"", ("Content-Encoding: gzip",), ""),
    (TEXT.encode("latin-1"), ("Content-Type: text/plain; charset=ISO-8859-1",), TEXT),
    (b"\x93a\x94", ("Content-Type: text/plain;charset=\"iso-8859-1\"",), "“a”"),
    (TEXT.encode("cp1252"), ("Content-Type: text/html; x=y; Charset = windows-1252",), TEXT),
    (UTF8, ("Content-Type: text/html; charset=none-such",), TEXT),
    (UTF8, ("Content-Type: text/html; charset=rot13",), TEXT),
    (UTF8, ("Content-Type: text/html; charset=unicode_escape",), TEXT),
    (UTF8, ("Content-Type: application/json", "Content-Type: x; charset=utf-16"), TEXT),
    (TEXT.encode("utf-16"), ("Content-Type: text/plain; charset=utf-8",), TEXT),
    (TEXT.encode("utf-16-be"), ("Content-Type: text/plain; charset=utf-16be",), TEXT),
    (TEXT.encode("utf-8-sig"), (), TEXT),
    ("データ".encode("shift_jis"), ("Content-Type: text/plain; charset=Shift_JIS",), "データ"),
    ("数据".encode("gbk"), ("Content-Type: text/plain; charset=gb2312",), "数据"),
    ("да".encode("koi8-r"), ("Content-Type: text/plain; charset=koi8-r",), "да"),
    (gzip.compress("да".encode("cp1251")),
     ("Content-Encoding: gzip", "Content-Type: text/plain; charset=windows-1251"), "да"),
)  # fmt: skip


def test_text() -> None:
    for body, headers, text in CASES:
        assert shown(body, *headers) == (text, True, False), (body, headers)


def test_bytes_that_are_no_text_are_told() -> None:
    hebrew = "Content-Type: text/plain; charset=iso-8859-8"
    assert shown(b"\xf9\xa1", hebrew) == ("\u05e9\ufffd", False, False)
    assert shown(b"a\xff\xfe b") == ("a\ufffd\ufffd b", False, False)
    assert shown("ação".encode("latin-1")) == ("a\ufffd\ufffdo", False, False)
    assert not shown(b"\x80\x81", "Content-Encoding: compress").exact
    # Of a stored beginning, the last character may have only a part.
    assert shown(UTF8[:2], truncated=True) == ("n", True, True)
    assert shown(UTF8[:2]) == ("n\ufffd", False, False)


def test_what_precedes_a_fault_is_shown() -> None:
    for damaged in (LONG[:-700], LONG[:-700] + bytes(700)):
        text, exact, cut = shown(damaged, "Content-Encoding: gzip")
        assert (NOISE.startswith(text[:2000]), len(text) > 2000, exact, cut) == (
            True, True, False, True,
        )  # fmt: skip
    # The log has the beginning alone.
    text, exact, cut = shown(LONG[:-700], "Content-Encoding: gzip", truncated=True)
    assert (NOISE.startswith(text), exact, cut) == (True, False, True)


def test_a_bomb_is_undone_as_far_as_it_is_shown() -> None:
    for body, coding in (
        (BOMB, "gzip"),
        (gzip.compress(BOMB), "gzip, gzip"),
        (zlib.compress(bytes(10_000_000)), "deflate"),
        (gzip.compress(b"") * 800 + BOMB, "gzip"),
    ):
        text, exact, cut = shown(body, f"Content-Encoding: {coding}")
        assert (text == "\0" * MOST_TEXT, exact, cut) == (True, False, True), coding


def test_codings_are_bounded() -> None:
    body = UTF8
    for _ in range(5):
        body = gzip.compress(body)
    assert shown(body, "Content-Encoding: gzip,gzip,gzip,gzip,gzip").text.startswith("\x1f\ufffd")


def library(coding: str) -> Any:
    if coding == "br":
        return import_module(need("brotli"))
    own = sys.version_info >= (3, 14)
    return import_module("compression.zstd" if own else f"{need('backports')}.zstd")


@pytest.mark.slow
@pytest.mark.parametrize("coding", ["br", "zstd"])
def test_libraries_that_are_not_everywhere(coding: str) -> None:
    compress, header = library(coding).compress, f"Content-Encoding: {coding}"
    assert shown(compress(UTF8), header) == (TEXT, True, False)
    text, exact, cut = shown(compress(bytes(10_000_000)), header)
    assert (text == "\0" * MOST_TEXT, exact, cut) == (True, False, True)
    assert not shown(b"\xffno", header).exact

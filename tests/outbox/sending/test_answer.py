"""The fast parser of simple responses agrees with aiohttp's parser, or leaves them to it."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiohttp.client_proto import ResponseHandler
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.sending.plain_response import read_plain
from outbox.sending.response import Reading

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with closing(asyncio.new_event_loop()) as event_loop:
        yield event_loop


def as_aiohttp_reads(
    data: bytes, loop: asyncio.AbstractEventLoop
) -> tuple[int, list[tuple[str, str]], bytes, bool]:
    handler = ResponseHandler(loop)
    handler.set_response_params(read_until_eof=True, auto_decompress=False)
    handler.data_received(data)
    error = handler.exception()
    assert error is None, error
    ((message, payload), _), *more = handler._buffer
    assert not more
    assert payload.is_eof()
    headers = [(name.decode(), value.decode()) for name, value in message.raw_headers]
    body = b"".join(payload._buffer)
    return message.code, headers, body, message.should_close


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"HTTP/1.1", b"HTTP/1.0"),
        (b"HTTP/1.1", b"HTTP/2.0"),
        (b"HTTP/1.1", b"http/1.1"),
        (b" 200 ", b" 100 "),
        (b" 200 ", b" 101 "),
        (b" 200 ", b" 204 "),
        (b" 200 ", b" 304 "),
        (b" 200 ", b" 600 "),
        (b" 200 ", b" 20 "),
        (b" 200 ", b"  200 "),
        (b" OK", b""),
        (b" OK", b" O\xc3\x89"),
        (b" OK", b" O\x00K"),
        (b"\r\n\r\n", b"\n\n"),
        (b"\r\n\r\n", b"\r\n"),
        (b"OK\r\n", b"OK\n"),
        (b"plain", b"pl\xe9in"),
        (b"plain", b"pl\x00in"),
        (b"plain", b"pl\rin"),
        (b"plain", b"plain\r\n folded"),
        (b"Content-Type:", b"Content-Type :"),
        (b"Content-Type:", b" Content-Type:"),
        (b"Content-Type:", b"Content(Type):"),
        (b"Content-Type:", b":"),
        (b"Content-Type:", b"Content-Length: 2\r\nX:"),
        (b"Content-Type:", b"X: 1\r\nx:"),
        (b"Content-Type:", b"Transfer-Encoding: chunked\r\nX:"),
        (b"Content-Type:", b"Connection: close\r\nX:"),
        (b"Content-Type:", b"Upgrade: h2c\r\nX:"),
        (b"Length: 2", b"Length: 1"),
        (b"Length: 2", b"Length: 3"),
        (b"Length: 2", b"Length: +2"),
        (b"Length: 2", b"Length: 2, 2"),
        (b"Length: 2", b"Length: 0x2"),
        (b"Length: 2", b"Length: 0000000002"),
        (b"Length: 2", b"Length:"),
        (b"Content-Length", b"X-Length"),
        (b"ok", b"okay"),
        (b"ok", b""),
    ],
)
def test_anything_unusual_is_left_to_the_parser(old: bytes, new: bytes) -> None:
    assert old in PLAIN
    assert read_plain(PLAIN) is not None
    assert read_plain(PLAIN.replace(old, new, 1)) is None


names = st.sampled_from(
    ["X-A", "x-a", "Server", "Date", "Connection", "Retry-After", "Set-Cookie", "Content-Length",
     "Transfer-Encoding", "Keep-Alive", "!#$%&'*+.^_`|~"]
)  # fmt: skip
some = st.one_of(
    st.sampled_from(["keep-alive", "Keep-Alive", "close", "chunked", "2", "0", "", " 2 ", "a:b"]),
    st.text('\t !~aZ09:;,"', max_size=6),
)


@pytest.mark.slow
@given(
    status=st.one_of(st.integers(200, 599), st.sampled_from([200, 204, 304, 410, 503])),
    reason=st.text("\t !~aZ", max_size=5),
    headers=st.lists(st.tuples(names, some), max_size=5),
    body=st.binary(max_size=3),
    length=st.booleans(),
)
@example(status=200, reason="", headers=[("Connection", "keep-alive")], body=b"", length=True)
def test_what_is_read_quickly_is_read_as_aiohttp_reads_it(
    loop: asyncio.AbstractEventLoop,
    status: int,
    reason: str,
    headers: list[tuple[str, str]],
    body: bytes,
    length: bool,
) -> None:
    lines = [f"{name}: {value}\r\n" for name, value in headers]
    if length:
        lines.append(f"Content-Length: {len(body)}\r\n")
    data = f"HTTP/1.1 {status} {reason}\r\n{''.join(lines)}\r\n".encode() + body
    plain = read_plain(data)
    if plain is not None:
        head, taken = plain
        assert as_aiohttp_reads(data, loop) == (head.status, head.headers, taken, False)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(data: bytes) -> None:
    read_plain(data)
    read_plain(PLAIN[:20] + data + PLAIN[20:])


@pytest.mark.parametrize("first", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\n" + b"a:\n" * 1_001])
def test_many_blanks_in_a_header_do_not_take_the_square_of_their_number(first: bytes) -> None:
    reading = Reading()
    reading.feed(first + b"Retry-After: a" + b" " * 60_000 + b"b \r\n\r\n")
    assert reading.head is not None
    assert reading.head.retry_after == "a" + " " * 60_000 + "b"

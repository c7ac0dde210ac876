"""What stands at the endpoint may not be a collector: it gets no time, no memory and no belief."""

from __future__ import annotations

import gc
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from gateway.server.telemetry.otlp import MOST_READS, READ_BYTES, OtlpExporter
from gateway.server.telemetry.spans import Span

SPAN = Span("a", "server", "a" * 32, "b" * 16, None, True, 1, 2, {})
OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Listen on loopback, and answer each request; yield the URL and what connections send."""
    requests: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                requests.append(b"")
                with connection, suppress(OSError):
                    connection.settimeout(120)
                    while whole := read(connection):
                        requests[-1] += whole
                        answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/traces", requests
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(120)
    assert not thread.is_alive()


def read(connection: socket.socket) -> bytes:
    """Read one request; nothing at the end of the connection."""
    whole = b""
    while b"\r\n\r\n" not in whole:
        if not (part := connection.recv(65_536)):
            return b""
        whole += part
    head, _, body = whole.partition(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: (\d+)", head)
    assert length is not None
    while len(body) < int(length[1]):
        body += connection.recv(65_536)
    return head + body


def export(url: str, times: int = 1) -> list[str | None]:
    service = {"service.name": "carteiro", "service.version": "1"}
    exporter = OtlpExporter(url, {"x-api-key": "secret"}, service)
    try:
        return [exporter.export([SPAN]) for _ in range(times)]
    finally:
        exporter.close()
        # An error with its traceback holds the connections of the exporter until then.
        gc.collect()


@pytest.mark.slow
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_a_failure_and_not_followed(status: str) -> None:
    with answering(lambda other: other.sendall(OK + b"Content-Length: 0\r\n\r\n")) as (target, got):
        head = f"HTTP/1.1 {status}\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
        with answering(lambda other: other.sendall(head)) as (url, _):
            [told] = export(url)
    assert told is not None
    assert "the answer is a redirect; use the URL of its target" in told
    assert got == []


@pytest.mark.parametrize("status", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 400 Bad Request\r\n"])
def test_of_a_long_answer_little_is_read(status: bytes) -> None:
    sent = 0

    def endless(other: socket.socket) -> None:
        nonlocal sent
        other.sendall(status + b"\r\n")
        while True:
            sent += other.send(bytes(65_536))

    with answering(endless) as (url, _):
        [told] = export(url)
    assert (told is None) == (b"200" in status)
    # The rest is in the buffers of both sockets.
    assert sent < MOST_READS * READ_BYTES + 2**24


@pytest.mark.slow
def test_an_answer_that_drips_ends() -> None:
    """Each byte comes in time, so no timeout of a read ends it."""
    more = threading.Event()

    def drip(other: socket.socket) -> None:
        other.sendall(OK + b"Content-Length: 100000\r\n\r\n")
        while not more.wait(0.05):
            other.sendall(b"x")

    with answering(drip) as (url, _):
        assert export(url) == [None]
        more.set()

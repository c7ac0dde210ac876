"""The private parts of aiohttp that outbox.sending.wire uses, and the heads that it writes."""

import asyncio
import errno
import inspect
import resource
import socket
from math import inf
from typing import Any

import pytest
from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ConnectionKey

from outbox.sending.addresses import Rules, parse_place
from outbox.sending.connect import Route, few_left_from
from outbox.sending.guard import Guard
from outbox.sending.urls import check_url
from outbox.sending.wire import Wire
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import post, sender

OPEN = Rules(allow_http=True, allow=(parse_place("127.0.0.0/8"), parse_place("::1")))
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def route(url: str) -> Route:
    return Route(check_url(url, OPEN))


@pytest.mark.parametrize(
    ("url", "path", "host"),
    [
        ("https://example.com", "/", "example.com"),
        ("https://example.com:443/a?b=c", "/a?b=c", "example.com"),
        ("https://example.com:8443/a%20b", "/a%20b", "example.com:8443"),
        ("http://example.com:443/", "/", "example.com:443"),
        ("http://[::1]:9000/", "/", "[::1]:9000"),
        ("https://bücher.example/ü", "/%C3%BC", "xn--bcher-kva.example"),
    ],
)
def test_the_start_of_a_head(url: str, path: str, host: str) -> None:
    head = route(url).head([("X-A", "1"), ("X-B", "2")], 7)
    assert head.decode() == (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 7\r\nX-A: 1\r\nX-B: 2\r\n\r\n"
    )


def test_a_connector_asks_of_a_route_what_it_asks_of_a_request() -> None:
    ours = route("https://example.com:8443/")
    theirs = ClientRequest("POST", ours.url, loop=asyncio.new_event_loop())
    theirs.loop.close()
    assert ours.connection_key == theirs.connection_key
    for name in ("host", "port", "proxy", "proxy_headers", "server_hostname", "ssl", "url"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert ours.is_ssl() == theirs.is_ssl()


def test_a_route_apart_takes_no_pooled_connection() -> None:
    ours = route("https://example.com:8443/")
    apart = ours.apart()
    assert apart.connection_key != ours.connection_key
    assert apart.head([("X", "1")], 1) == ours.head([("X", "1")], 1)
    assert (apart.host, apart.port, apart.url) == (ours.host, ours.port, ours.url)
    assert isinstance(apart.connection_key, ConnectionKey)


async def test_the_private_parts_of_aiohttp_exist() -> None:
    connector = TCPConnector()
    assert connector._factory.func is ResponseHandler
    assert list(inspect.signature(connector.connect).parameters) == ["req", "traces", "timeout"]
    await connector.close()
    handler = ResponseHandler(asyncio.get_running_loop())
    for name in ("_parser", "_payload", "_reading_paused", "_buffer_paused"):
        assert hasattr(handler, name)


async def test_every_connection_is_ours_and_its_receive_buffer_is_small() -> None:
    async with receiver() as there, sender() as client:
        assert (await post(client, there.url)).outcome == "success"
        [pooled] = client._dialler._connector._conns.values()
        wire, _ = pooled[0]
        assert type(wire) is Wire
        assert wire.transport is not None
        size = wire.transport.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF
        )
        assert size <= 64 * 1024


async def test_a_receiver_that_sends_first_does_not_stall() -> None:
    async def eager(visit: Visit) -> None:
        await visit.write(EMPTY)
        await visit.reply(b"")

    async with hostile(eager) as there, sender() as client:
        outcome = await post(client, there.url)
        assert outcome.outcome == "success"


async def test_connections_in_use_do_not_leak() -> None:
    async def fail(visit: Visit) -> None:
        await visit.request()
        visit.reset()

    async with hostile(fail) as there, sender() as client:
        await asyncio.gather(*(post(client, there.url) for _ in range(50)))
        connector = client._dialler._connector
        assert not connector._acquired
        assert not connector._conns


async def test_idle_connections_close_where_few_descriptors_are_left() -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert few_left_from() == (limit - limit // 4 if limit > 0 else inf)
    async with receiver() as idle, receiver() as there, sender(scarce_from=0) as client:
        assert (await post(client, idle.url)).outcome == "success"
        [[(wire, _)]] = client._dialler._connector._conns.values()
        assert (await post(client, there.url)).outcome == "success"
        assert not wire.is_connected()
        assert [(await post(client, url)).outcome for url in (there.url, idle.url)] == [
            "success"
        ] * 2


class NoneLeft(Guard):
    """A guard in a process without a free descriptor."""

    def open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")


async def test_an_attempt_without_a_descriptor_is_a_connect_error() -> None:
    async with receiver() as there, sender(guarded=NoneLeft) as client:
        outcome = await post(client, there.url)
    assert (outcome.outcome, outcome.error) == ("connect_error", "too many open files")

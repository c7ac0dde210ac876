"""The private parts of aiohttp that outbox.sending.wire uses, and the heads that it writes."""

import errno
import resource
import socket
from math import inf
from typing import Any

from outbox.sending.connect import few_left_from
from outbox.sending.egress_guard import Guard
from outbox.sending.oddities import NOT_HTTP, REFUSALS
from tests.support.receiver import Visit, hostile, receiver
from tests.support.senders import post, sender

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


async def test_a_receiver_that_sends_first_does_not_stall() -> None:
    async def eager(visit: Visit) -> None:
        await visit.write(EMPTY)
        await visit.reply(b"")

    async with hostile(eager) as there, sender() as client:
        outcome = await post(client, there.url)
        assert outcome.outcome == "success"


async def test_a_server_that_greets_first_is_named() -> None:
    async def greet(visit: Visit) -> None:
        await visit.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await visit.gone()

    async with hostile(greet) as there, sender() as client:
        for _ in range(3):
            outcome = await post(client, there.url)
            assert (outcome.outcome, outcome.error) == (
                "protocol_error", f"{NOT_HTTP}: {REFUSALS['ssh']}"
            )  # fmt: skip


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

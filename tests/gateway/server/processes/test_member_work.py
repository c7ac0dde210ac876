"""One process of several, as its supervisor tells it to work and to rest; SQLite has one alone."""

import os
import socket
from collections.abc import AsyncIterator
from functools import partial

import pytest

from gateway.app import build_app
from gateway.server.processes.member import Member
from gateway.server.processes.shared_counters import shared_memory
from gateway.server.telemetry.metrics import METRICS
from outbox.database.transaction import Database
from tests.support.site import Site, serving
from tests.support.waiting import until


@pytest.fixture
async def member() -> AsyncIterator[Member]:
    ours, theirs = socket.socketpair()
    memory = shared_memory()
    member = Member(theirs.detach(), memory)
    with ours, member._end:
        yield member
    os.close(memory)


@pytest.fixture
async def site(db: Database, member: Member) -> AsyncIterator[Site]:
    async with serving(db, role="all", build=partial(build_app, member=member)) as site:
        yield site


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_process_that_rests_counts_for_nothing_in_the_sums(
    site: Site, member: Member
) -> None:
    """The node has the slots, the clock and the windows of the process that works."""
    metrics = site.app[METRICS]
    value = metrics.registry.get_sample_value
    window = partial(value, "webhook_endpoint_window", {"webhook": "w1"})
    for _ in range(2):
        await member.handlers["work"](b"")
        await until(lambda: value("outbox_slots") == 256)
        metrics.attempt("w1", "h", "first", "success", 0.1, 0.0)
        metrics.window("w1", 16)
        metrics.slots(256, 200)
        metrics.clock_skew(5.0)
        assert window() == 16
        await member.handlers["rest"](b"")
        await until(lambda: value("outbox_slots") == 0)
        assert value("outbox_slots_busy") == 0
        assert value("clock_skew_seconds") == 0
        assert window() is None
        counted = {"webhook": "w1", "outcome": "success"}
        assert value("webhook_endpoint_attempts_total", counted)

"""Circuits: what opens and closes them, what is sent while one is open, and when failing disables.

Attempts are made up and their results recorded; time passes by moving what the database waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import pytest

from outbox import webhooks
from outbox.database.transaction import Database, Row, Tx
from outbox.events import enqueue
from outbox.queue.drain import probes
from outbox.queue.drain.claim import claim
from outbox.queue.drain.settle import Settlement, settle
from outbox.queue.replays import delivery_steering, replay
from outbox.queue.state import lanes
from outbox.queue.state.circuits import (
    DISABLED_AFTER,
    FAILURES,
    FIRST_WAIT,
    LONGEST_WAIT,
    Transition,
)
from outbox.queue.state.claimed_deliveries import Capacity, Claimed, Result
from outbox.queue.state.evidence import Evidence
from outbox.queue.state.policy import Schedule, again, decide, probed
from outbox.queue.upkeep import parking
from outbox.sending.outcome import Outcome, unanswered
from outbox.states import OutcomeName
from outbox.webhooks import Draft
from tests.support.drain import OWNER, add_webhook, make_many, ring, rows
from tests.support.lines import fanned

URL = "http://127.0.0.1:9/"
SECOND = 1_000_000
DAY = 86_400 * SECOND
STATUS: dict[str, int] = {"success": 200, "http_5xx": 500, "http_4xx": 410, "throttled": 503}


@dataclass
class Node:
    """One node's claims and results, by hand."""

    db: Database
    name: str = "node"
    schedule: Schedule = field(default_factory=lambda: Schedule((60.0,) * 9))
    claims: int = 0
    url: str = URL

    async def claim(self, slots: int = 20) -> list[Claimed]:
        self.claims += 1
        capacity = Capacity(
            self.name, f"{self.name}-{self.claims}", slots, slots, slots, {}, 1_000_000
        )
        return (await self.db.write(claim, capacity, {})).claimed

    def result(self, delivery: Claimed, outcome: OutcomeName) -> Result:
        got = outcome_of(outcome)
        decision = decide(
            got, tries=delivery.attempt.tries, schedule=self.schedule, dice=0.5, now_wall_s=0.0
        )
        if delivery.attempt.probe:
            decision = probed(decision)
        return Result(delivery, decision, got, 1, ["x"], self.url, self.name)

    async def settle(self, claimed: Sequence[Claimed], outcome: OutcomeName) -> Settlement:
        return await self.db.write(settle, [self.result(each, outcome) for each in claimed])

    async def fail(self, times: int) -> list[Transition]:
        """Fail this many first attempts, one after another."""
        transitions: list[Transition] = []
        for _ in range(times):
            [delivery] = await self.claim(1)
            transitions += (await self.settle([delivery], "http_5xx")).transitions
        return transitions

    async def later(self, micros: int) -> None:
        await self.db.write(wait, micros)


def outcome_of(name: OutcomeName) -> Outcome:
    return replace(unanswered(name, "made up", 0.001), status=STATUS.get(name))


async def wait(tx: Tx, micros: int) -> None:
    """Let time pass: everything that waits is due so much earlier."""
    await tx.run("update deliveries set next_at = next_at - $1", micros)
    await tx.run(
        """
        update lanes set probe_at = probe_at - $1, failing_from = failing_from - $1,
          wait_until = wait_until - $1, turned_at = turned_at - $1, due_at = due_at - $1
        """,
        micros,
    )


async def set_timeout(tx: Tx, webhook_id: str, timeout_ms: int | None) -> None:
    await tx.run("update webhooks set timeout_ms = $2 where id = $1", webhook_id, timeout_ms)


async def webhook(db: Database, webhook_id: str) -> Row:
    [row] = await db.read(rows, "select * from webhooks where id = $1", webhook_id)
    return row


async def waiting(db: Database, count: int = 30) -> str:
    """Create a webhook with this many deliveries waiting; return its id."""
    webhook_id, _ = await add_webhook(db, ring(), URL)
    await db.write(make_many, count)
    await fanned(db)
    return webhook_id


async def opened(db: Database, count: int = 30) -> tuple[Node, str]:
    webhook_id = await waiting(db, count)
    node = Node(db)
    [change] = await node.fail(FAILURES)
    assert change.to == "open"
    return node, webhook_id


async def probe(node: Node) -> Claimed:
    """Wait for the next probe, and return it."""
    await node.later(LONGEST_WAIT)
    [delivery] = await node.claim()
    assert delivery.attempt.probe
    return delivery


async def test_ten_failures_in_a_row_open_the_circuit_and_nine_do_not(db: Database) -> None:
    webhook_id = await waiting(db)
    node = Node(db)
    assert await node.fail(FAILURES - 1) == []
    assert (await webhook(db, webhook_id))["circuit"] == "closed"
    [change] = await node.fail(1)
    row = await webhook(db, webhook_id)
    assert change == Transition(webhook_id, OWNER, "open", "http_5xx", row["failing_since"])
    assert row["circuit"] == "open"
    assert await node.claim() == []


async def test_a_success_between_failures_keeps_the_circuit_closed(db: Database) -> None:
    webhook_id = await waiting(db)
    node = Node(db)
    assert await node.fail(FAILURES - 1) == []
    await node.settle(await node.claim(1), "success")
    assert await node.fail(FAILURES - 1) == []
    assert (await webhook(db, webhook_id))["circuit"] == "closed"


@pytest.mark.parametrize("timeout_ms", [None, 25_000])
async def test_one_probe_at_a_time_while_the_receiver_hangs_longer_than_the_backoff(
    db: Database, timeout_ms: int | None
) -> None:
    webhook_id = await waiting(db)
    await db.write(set_timeout, webhook_id, timeout_ms)
    node = Node(db, schedule=Schedule((1.0,) * 9))
    await node.fail(FAILURES)
    assert (await webhook(db, webhook_id))["circuit_backoff"] == SECOND
    await node.later(2 * SECOND)
    [hanging] = await node.claim()
    assert hanging.attempt.probe
    longest = (timeout_ms or 30_000) // 1000
    for _ in range(longest - 10):
        await node.later(SECOND)
        # Each new event wakes the lane.
        await db.write(make_many, 1)
        await fanned(db)
        assert await node.claim() == []
    # Its result decides when the next one comes: after twice the backoff.
    await node.settle([hanging], "timeout")
    await node.later(3 * SECOND)
    [lost] = await node.claim()
    # Should the node end meanwhile, another probe comes a little later.
    await node.later((longest + 6) * SECOND)
    [following] = await node.claim()
    assert following.attempt.probe
    assert following.id != lost.id


async def corrected(tx: Tx, webhook_id: str, url: str) -> None:
    before = await webhooks.one(tx, webhook_id)
    assert before is not None
    await lanes.lock(tx, [webhook_id])
    draft = Draft(url=url, events=("thing.made",), description="corrected")
    assert await webhooks.change(tx, webhook_id, before.version, draft, ring())
    if url != before.url:
        await delivery_steering.try_new_url(tx, before)


async def test_a_new_url_starts_healthy_and_is_tried_at_once(db: Database) -> None:
    node, webhook_id = await opened(db, 15)
    listener, _ = await add_webhook(db, ring(), URL, "endpoint.recovered")
    await node.later(DISABLED_AFTER + SECOND)
    await db.write(corrected, webhook_id, "http://127.0.0.1:10/new")
    row = await webhook(db, webhook_id)
    assert (row["failures"], row["failing_since"], row["circuit"]) == (0, None, "closed")
    assert (row["circuit_opened_at"], row["circuit_backoff"]) == (None, None)
    [lane] = await db.read(rows, "select * from lanes where webhook_id = $1", webhook_id)
    assert (bool(lane["failing"]), lane["probe_at"], lane["failing_from"]) == (False, None, None)
    # What waited for the circuit, and the retries of the old URL's failures.
    [probed_too] = await db.read(
        rows, "select count(*) as n from deliveries where webhook_id = $1 and state = 'ready'"
        " and next_at <= due_now()", webhook_id,
    )  # fmt: skip
    assert probed_too["n"] == 15
    claimed = await node.claim(2)
    assert len(claimed) == 2
    assert not any(each.attempt.probe for each in claimed)
    node.url = "http://127.0.0.1:10/new"
    # One failure of the new URL neither disables the webhook nor opens its circuit.
    assert not (await node.settle(claimed, "http_5xx")).transitions
    assert (await webhook(db, webhook_id))["state"] == "active"
    names = await db.read(rows, "select name from events where name like 'endpoint.%'")
    assert [each["name"] for each in names] == ["endpoint.recovered"]
    assert listener


async def test_only_a_new_url_starts_healthy(db: Database) -> None:
    node, webhook_id = await opened(db, 15)
    before = await webhook(db, webhook_id)
    await db.write(corrected, webhook_id, before["url"])
    row = await webhook(db, webhook_id)
    columns = ("failures", "failing_since", "circuit", "circuit_opened_at", "circuit_backoff")
    assert [row[name] for name in columns] == [before[name] for name in columns]
    assert (row["description"], row["failures"]) == ("corrected", FAILURES)
    assert await node.claim() == []
    # A change that comes too late changes nothing.
    draft = Draft(url="http://127.0.0.1:11/late", events=("thing.made",))
    assert not await db.write(webhooks.change, webhook_id, 1, draft, ring())
    row = await webhook(db, webhook_id)
    assert [row[name] for name in columns] == [before[name] for name in columns]


@pytest.mark.parametrize(("delay", "first"), [(0.0, 1), (5.0, 5), (600.0, FIRST_WAIT // SECOND)])
async def test_the_first_probe_follows_the_schedule_and_each_next_waits_twice_as_long(
    db: Database, delay: float, first: int
) -> None:
    await waiting(db)
    node = Node(db, schedule=Schedule((delay,) * 9))
    assert len(await node.fail(FAILURES)) == 1
    waits = []
    for _ in range(12):
        [lane] = await db.read(rows, "select probe_at - due_now() as wait from lanes")
        # Some of it has passed since the result was recorded.
        waits.append(ceil(lane["wait"] / SECOND))
        await node.later(lane["wait"] - 5 * SECOND if waits[-1] > 6 else 0)
        assert await node.claim() == []
        await node.later(6 * SECOND)
        [delivery] = await node.claim()
        assert delivery.attempt.probe
        assert not (await node.settle([delivery], "http_5xx")).transitions
    assert waits == [min(first * 2**n, LONGEST_WAIT // SECOND) for n in range(12)]


async def test_one_probe_at_a_time_whatever_the_number_of_nodes(db: Database) -> None:
    node, webhook_id = await opened(db)
    other = Node(db, "other")
    await probe(node)
    assert await other.claim() == []
    assert await node.claim() == []
    # The node has ended without a result: the next probe comes when that one has surely ended.
    longest = (probes.LONGEST_TIMEOUT_MS + probes.SETTLING_MS) * 1_000
    await node.later(max((await webhook(db, webhook_id))["circuit_backoff"], longest))
    assert [each.attempt.probe for each in await other.claim()] == [True]


async def test_a_probe_that_tells_nothing_of_the_receiver_is_made_again_at_once(
    db: Database,
) -> None:
    node, webhook_id = await opened(db)
    backoff = (await webhook(db, webhook_id))["circuit_backoff"]
    assert not (await node.settle([await probe(node)], "aborted")).transitions
    [delivery] = await node.claim()
    assert delivery.attempt.probe
    unsent = Result(delivery, again("webhook changed"), None, 1, [], URL, "node")
    await db.write(settle, [unsent])
    assert [each.attempt.probe for each in await node.claim()] == [True]
    assert (await webhook(db, webhook_id))["circuit_backoff"] == backoff


async def test_a_failed_proxy_disables_no_webhook(db: Database) -> None:
    webhook_id = await waiting(db)
    node = Node(db)
    await node.fail(1)
    await db.write(
        rows, "update lanes set failing_from = failing_from - $1 returning webhook_id",
        DISABLED_AFTER,
    )  # fmt: skip
    assert not (await node.settle(await node.claim(1), "proxy_error")).transitions
    assert (await webhook(db, webhook_id))["state"] == "active"
    # The days have passed, and here are the attempts that are needed too.
    assert await node.fail(Evidence().attempts - 2) == []
    assert [change.to for change in await node.fail(1)] == ["open", "disabled"]


async def test_failures_of_few_events_disable_no_webhook(db: Database) -> None:
    webhook_id = await waiting(db, 1)
    node = Node(db, schedule=Schedule((0.0,) * 99))
    changes, tried = list[Transition](), set[str]()
    while len(tried) < Evidence().events:
        for _ in range(FAILURES):
            await node.later(DAY)
            [delivery] = await node.claim(1)
            tried.add(delivery.event.id)
            changes += (await node.settle([delivery], "http_5xx")).transitions
            if len(tried) == Evidence().events:
                break
        else:
            assert [change.to for change in changes] == ["open"]
            await db.write(make_many, 1)
            await fanned(db)
    assert [change.to for change in changes] == ["open", "disabled"]
    # What failed before counts no more.
    assert await parking.activate(db, webhook_id, "all")
    assert (await webhook(db, webhook_id))["failed_events"] is None


async def test_a_probe_that_the_proxy_fails_comes_again_after_the_same_wait(db: Database) -> None:
    node, webhook_id = await opened(db)
    await db.write(rows, "update webhooks set timeout_ms = 1000 returning id")
    before = await webhook(db, webhook_id)
    assert not (await node.settle([await probe(node)], "proxy_error")).transitions
    after = await webhook(db, webhook_id)
    assert (after["circuit"], after["failures"]) == ("open", before["failures"])
    assert after["circuit_backoff"] == before["circuit_backoff"]
    assert await node.claim() == []
    await node.later(max(before["circuit_backoff"], (1_000 + probes.SETTLING_MS) * 1_000))
    assert [each.attempt.probe for each in await node.claim()] == [True]


async def finished(db: Database) -> str:
    """Return a delivery that has ended, so that it can be replayed."""
    [row] = await db.read(rows, "select id from deliveries order by id limit 1")
    await db.write(
        rows, "update deliveries set state = 'exhausted' where id = $1 returning id", row["id"]
    )
    return str(row["id"])


async def ask_for_test(tx: Tx, webhook_id: str) -> None:
    enqueue(
        tx, owner_id=OWNER, name="thing.made", record_id="t", record_version=1, data={},
        webhook_id=webhook_id,
    )  # fmt: skip


async def newest(db: Database) -> str:
    """Return the delivery that would be the last one to be sent."""
    [row] = await db.read(
        rows, "select id from deliveries where tries = 0 and state = 'ready' order by next_at desc"
        " limit 1",
    )  # fmt: skip
    return str(row["id"])


@pytest.mark.parametrize("origin", ["replay", "test", "event"])
@pytest.mark.parametrize("outcome", ["success", "http_5xx"])
async def test_what_somebody_asks_for_passes_an_open_circuit_once(
    db: Database, origin: str, outcome: OutcomeName
) -> None:
    node, webhook_id = await opened(db)
    for number in range(2):
        if origin == "replay":
            await db.write(replay.one, await finished(db), "user")
        elif origin == "test":
            await db.write(ask_for_test, webhook_id)
            await fanned(db)
        else:
            await db.write(delivery_steering.try_now, await newest(db))
        [delivery] = await node.claim()
        attempt = delivery.attempt
        assert (delivery.origin, attempt.probe, attempt.tries) == (origin, False, 0)
        if number == 0:
            # Without a result: nothing else passes with it.
            assert await node.claim() == []
            await node.settle([delivery], "http_5xx")
            assert await node.claim() == []
    changes = (await node.settle([delivery], outcome)).transitions
    assert [change.to for change in changes] == (["closed"] if outcome == "success" else [])
    assert bool(await node.claim()) == (outcome == "success")
    assert await db.read(rows, "select * from passes") == []
    [kind] = await db.read(rows, "select kind from attempts where delivery_id = $1", delivery.id)
    assert kind["kind"] == origin


async def test_a_pass_that_nobody_can_use_keeps_no_claim_busy(db: Database) -> None:
    node, _ = await opened(db)
    replayed = await db.write(replay.one, await finished(db), "user")
    await db.write(
        rows, "update deliveries set state = 'cancelled' where id = $1 returning id", replayed
    )
    assert await node.claim() == []
    [lane] = await db.read(rows, "select due_at, probe_at from lanes")
    assert lane["due_at"] == lane["probe_at"]
    # The circuit closes, and what is left goes.
    await node.settle([await probe(node)], "success")
    assert await db.read(rows, "select * from passes") == []


async def test_a_webhook_is_disabled_five_days_after_its_first_failure(db: Database) -> None:
    node, webhook_id = await opened(db)
    since = (await webhook(db, webhook_id))["failing_since"]
    await node.later(DISABLED_AFTER - 60 * SECOND)
    [delivery] = await node.claim()
    assert not (await node.settle([delivery], "http_5xx")).transitions
    await node.later(LONGEST_WAIT)
    [delivery] = await node.claim()
    [change] = (await node.settle([delivery], "timeout")).transitions
    assert change == Transition(webhook_id, OWNER, "disabled", "failing", since)
    row = await webhook(db, webhook_id)
    assert (row["state"], row["disabled_reason"]) == ("disabled", "failing")
    await node.later(LONGEST_WAIT)
    assert await node.claim() == []
    # Nothing ended: what waits is parked, and the owner chooses.
    states = await db.read(rows, "select distinct state from deliveries")
    assert [row["state"] for row in states] == ["ready"]
    assert await parking.activate(db, webhook_id, "all")
    assert await node.fail(FAILURES - 1) == []


async def test_a_jump_of_the_wall_clock_disables_nothing(db: Database) -> None:
    node, webhook_id = await opened(db)
    await db.write(
        rows, "update webhooks set failing_since = 1 where id = $1 returning id", webhook_id
    )
    assert not (await node.settle([await probe(node)], "http_5xx")).transitions
    assert (await webhook(db, webhook_id))["state"] == "active"


async def test_an_attempt_that_tells_nothing_disables_nothing(db: Database) -> None:
    node, webhook_id = await opened(db)
    await node.later(DISABLED_AFTER + DAY)
    [delivery] = await node.claim()
    assert not (await node.settle([delivery], "aborted")).transitions
    assert (await webhook(db, webhook_id))["state"] == "active"


async def test_410_disables_only_the_address_that_gave_it(db: Database) -> None:
    webhook_id = await waiting(db)
    node = Node(db)
    [first, second] = await node.claim(2)
    elsewhere = replace(node.result(first, "http_4xx"), url="http://other/")
    assert not (await db.write(settle, [elsewhere])).transitions
    [change] = (await node.settle([second], "http_4xx")).transitions
    assert (change.to, change.reason) == ("disabled", "gone")
    assert (await webhook(db, webhook_id))["disabled_reason"] == "gone"

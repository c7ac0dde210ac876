"""The metrics of several processes as one exposition."""

import math

from prometheus_client import generate_latest

from gateway.server.processes.sums import (
    Families,
    add,
    counted,
    dropped,
    parse,
    render,
    together,
)
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.webhook_series import IDLE_SECONDS
from tests.gateway.server.telemetry.test_metrics import busy, new_metrics


def exposition(attempts: int, busy_slots: int, tick: float = 0.0, oldest: str = "NaN") -> Families:
    return parse(
        "# HELP webhook_attempts_total Requests.\n# TYPE webhook_attempts_total counter\n"
        f'webhook_attempts_total{{outcome="a b"}} {attempts}.0\n'
        "# HELP t Seconds.\n# TYPE t histogram\n"
        f't_bucket{{le="1.0"}} {attempts}.0\nt_count {attempts}.0\nt_sum 0.5\n'
        "# HELP outbox_slots_busy Busy.\n# TYPE outbox_slots_busy gauge\n"
        f"outbox_slots_busy {busy_slots}.0\n"
        f"# HELP tick At.\n# TYPE tick gauge\ntick {tick}\n"
        f"# HELP oldest Age.\n# TYPE oldest gauge\noldest {oldest}\n"
    )


def values(families: Families) -> dict[str, float]:
    return {series: v for family in families.values() for series, v in family.samples.items()}


def test_a_value_that_only_one_process_knows_stands_for_the_node() -> None:
    for known in (["2.5", "NaN"], ["NaN", "2.5"]):
        node = values(together([exposition(0, 0, oldest=age) for age in known], {}))
        assert node["oldest"] == 2.5
    # The difference to the database's clock may be below zero.
    node = values(together([exposition(0, 0, tick=0.0), exposition(0, 0, tick=-3.0)], {}))
    assert node["tick"] == -3
    assert math.isnan(values(together([exposition(0, 0)] * 2, {}))["oldest"])


def test_the_counts_of_an_ended_process_stay_and_its_gauges_go() -> None:
    past: Families = {}
    add(past, exposition(100, 5), gauges=False)
    add(past, exposition(10, 5), gauges=False)
    for _ in range(2):
        node = values(together([exposition(1, 2)], past))
        assert node['webhook_attempts_total{outcome="a b"}'] == 111
        assert node["t_sum"] == 1.5
        assert node["outbox_slots_busy"] == 2


def test_a_webhook_that_no_process_has_chosen_leaves() -> None:
    def of(webhook: str, count: int) -> Families:
        name = "webhook_endpoint_attempts_total"
        return parse(
            f'# HELP {name} A.\n# TYPE {name} counter\n{name}{{webhook="{webhook}"}} {count}'
        )

    past: Families = {}
    add(past, of("a", 5), gauges=False)
    add(past, of("b", 7), gauges=False)
    assert values(together([of("b", 1)], past)) == {
        'webhook_endpoint_attempts_total{webhook="b"}': 8
    }
    # Chosen again, it starts at zero, as in a process that has run all the time.
    assert values(together([of("a", 0)], past)) == {
        'webhook_endpoint_attempts_total{webhook="a"}': 0
    }


def sent(metrics: Metrics, *ids: str, now: float = 0.0, success: int = 0, failed: int = 0) -> None:
    for webhook in ids:
        for _ in range(success):
            metrics.webhooks.attempt(webhook, "h", "success", 0.1, now=now, wall=now)
        for _ in range(failed):
            metrics.webhooks.attempt(webhook, "h", "connect_error", 9.0, now=now, wall=now)
        metrics.webhooks.finished(webhook, "delivered")


class Node:
    """Processes as their supervisor adds them up, scrape after scrape."""

    def __init__(self, *processes: Metrics) -> None:
        self.processes = processes
        self.past: Families = {}
        self.before: list[Families] = [{} for _ in processes]

    def scrape(self) -> dict[str, float]:
        now = [parse(generate_latest(metrics.registry).decode()) for metrics in self.processes]
        for before, after in zip(self.before, now, strict=True):
            add(self.past, dropped(before, after))
        self.before = now
        return {
            series: value
            for family in together(now, self.past).values()
            if family.counts
            for series, value in family.samples.items()
            if series.startswith("webhook_endpoint_")
        }


def of(webhook: str, values: dict[str, float]) -> dict[str, float]:
    return {s: value for s, value in values.items() if f'webhook="{webhook}"' in s}


def test_the_counts_of_a_webhook_stay_while_any_process_has_its_series() -> None:
    first, second = new_metrics(), new_metrics()
    node = Node(first, second)
    sent(first, "w1", "w2", success=40, failed=60)
    node.scrape()
    # The second one works now, and has met failures alone at one of the two.
    sent(second, "w1", now=10.0, failed=30)
    before = node.scrape()
    assert before['webhook_endpoint_attempts_total{outcome="success",webhook="w1"}'] == 40
    first.webhooks.choose({}, IDLE_SECONDS)
    for _ in range(2):
        after = node.scrape()
        assert of("w1", after) == of("w1", before)
        assert of("w2", after) == {}
    # The first one begins a new series, and drops it again, beside that of the second one.
    sent(first, "w1", now=IDLE_SECONDS, success=2)
    name = 'webhook_endpoint_attempts_total{{outcome="{}",webhook="w1"}}'
    grown = node.scrape()
    assert [grown[name.format(end)] for end in ("success", "connect_error")] == [42, 90]
    sent(second, "w1", now=2 * IDLE_SECONDS, failed=1)
    first.webhooks.choose({}, 2 * IDLE_SECONDS)
    after = node.scrape()
    assert [after[name.format(end)] for end in ("success", "connect_error")] == [42, 91]
    assert after['webhook_endpoint_duration_seconds_count{webhook="w1"}'] == 133
    # When the last one has dropped it, it ends; it starts at zero as in one process.
    second.webhooks.choose({}, 3 * IDLE_SECONDS)
    assert of("w1", node.scrape()) == {}
    sent(second, "w1", now=3 * IDLE_SECONDS, success=1)
    assert of("w1", node.scrape())[name.format("success")] == 1


def test_a_series_that_was_begun_anew_between_two_scrapes_does_not_fall() -> None:
    metrics = new_metrics()
    node = Node(metrics)
    sent(metrics, "w1", success=3, failed=1)
    sent(metrics, "w2", success=1)
    before = node.scrape()
    metrics.webhooks.choose({}, IDLE_SECONDS)
    # Fewer of some kind than before, and more of another.
    sent(metrics, "w1", now=IDLE_SECONDS, failed=5)
    sent(metrics, "w2", now=IDLE_SECONDS, success=1)
    after = node.scrape()
    assert {s: (v, after[s]) for s, v in before.items() if s in after and after[s] < v} == {}
    name = 'webhook_endpoint_attempts_total{{outcome="{}",webhook="w1"}}'
    assert [after[name.format(end)] for end in ("success", "connect_error")] == [3, 6]
    assert after['webhook_endpoint_duration_seconds_count{webhook="w1"}'] == 9
    steps = [after[s] for s in after if s.startswith("webhook_endpoint_duration_seconds_bucket")]
    assert [steps[at : at + 6] for at in range(0, len(steps), 6)] == [
        [0, 3, 3, 3, 9, 9], [0, 1, 1, 1, 1, 1], [0] * 6,
    ]  # fmt: skip


def test_our_own_exposition_survives() -> None:
    metrics = new_metrics()
    busy(metrics)
    metrics.request("api", "/api/contacts", "GET", 200, 0.1)
    text = generate_latest(metrics.registry).decode()
    assert render(parse(text)) == text
    one, two = values(parse(text)), values(together([parse(text), parse(text)], {}))
    assert one.keys() == two.keys()
    assert two["outbox_fenced_acks_total"] == 2


def test_the_supervisor_tells_how_many_processes_answer() -> None:
    alone = parse(generate_latest(new_metrics().registry).decode())
    states = {'server_processes{state="answering"}': 1, 'server_processes{state="missing"}': 0}
    assert states.items() <= values(alone).items()
    families = together([alone, alone], {})
    node = values(counted(families, answering=2, missing=1, restarts=5, started=1_000.0))
    assert [node[state] for state in states] == [2, 1]
    assert node["server_process_restarts_total"] == 5
    # One process that is started again does not look like a start of the node.
    assert node["process_start_time_seconds"] == 1_000
    assert counted({}, answering=0, missing=3, restarts=0, started=0.0) == {}

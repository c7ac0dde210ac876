"""The metrics of several processes as one exposition."""

import math

from prometheus_client import generate_latest

from gateway.server.processes.sums import Families, add, counted, parse, render, together
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

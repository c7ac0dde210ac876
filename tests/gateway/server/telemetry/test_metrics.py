"""The metrics page: its names, its bounds, who may read it."""

import math
import re
import subprocess
from collections.abc import AsyncIterator, Mapping

import pytest
from prometheus_client import generate_latest

from gateway.server import config
from gateway.server.config import Config
from gateway.server.config import Metrics as Settings
from gateway.server.telemetry.metrics import METRICS, Metrics
from gateway.server.telemetry.webhook_series import IDLE_SECONDS, WebhookSeries
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.observer import Observer
from outbox.queue.log.backlogs import Backlog, Backlogs
from outbox.queue.log.certificate_ends import Ending
from outbox.queue.log.gauges import Gauges, WebhookHealth
from outbox.queue.log.waiting_counts import Waiting
from outbox.queue.state.claimed_deliveries import FAILING_WINDOW, FIRST_WINDOW
from outbox.states import OutcomeName
from tests.architecture.tree import ROOT
from tests.support.requirements import need
from tests.support.rows import add_waiting, add_webhooks, webhook_id
from tests.support.site import Site, serving
from tests.support.waiting import until

ENGINE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

PAGE = (ROOT / "docs" / "reference" / "series.md").read_text()
DOCUMENTED = set(re.findall(r"^\| `([a-z_]+)`", PAGE, re.M))
NOT_YET = {
    "graphql_operations_total", "mail_attempts_total", "tracing_spans_total",
    "webhook_circuit_transitions_total", "webhook_endpoint_last_success_timestamp_seconds",
}  # fmt: skip
"""Nothing of theirs has happened in a test."""
OF_TROUBLE = ("webhook_backlog_", "owner_backlog_", "webhook_client_certificate_")
BEHIND = {name for name in DOCUMENTED if name.startswith(OF_TROUBLE)}


def new_metrics(series: int = 500) -> Metrics:
    return Metrics(clock=SystemClock(), webhook_series=series, build={"version": "1"})


def busy(observer: Observer) -> None:
    """Everything that a drain can tell, told once."""
    observer.tick()
    observer.fanned_out({"contact.created": 2}, {"contact.created": 4})
    observer.left_out({"contact.created": 3})
    observer.claimed("rows", 0.001)
    observer.started("first", 0.2, False)
    observer.slots(256, 3)
    observer.attempt("w1", "a.example", "first", "success", 0.1, 0.0)
    observer.attempt("w1", "a.example", "retry", "timeout", 15.0, 0.0)
    observer.delivery_finished("w1", "delivered", 0.3)
    observer.rescued("startup", 2)
    observer.fenced()
    observer.deferred(1)
    observer.cut()
    observer.restarted()
    observer.clock_skew(0.1)
    observer.window("w1", 3)
    observer.connection(True)
    observer.truncated()
    observer.redirect_refused()
    observer.transaction("write", 0.002)
    observer.fault("busy")


def swept(observer: Observer) -> None:
    """Everything that retention can tell, told once."""
    observer.purged("tokens", 2)
    observer.swept("tokens")


@pytest.fixture
async def site(db: Database, db_url: str) -> AsyncIterator[Site]:
    async with serving(db, Config(database=config.Database(url=db_url))) as site:
        value = site.app[METRICS].registry.get_sample_value
        # On PostgreSQL it must become the leader first.
        await until(lambda: value("outbox_deliveries", {"state": "ready"}) is not None)
        yield site


async def scraped(site: Site, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    async with site.http.get("/metrics", headers=headers) as answer:
        return answer.status, await answer.text()


async def test_every_documented_name_is_there_and_promtool_agrees(site: Site) -> None:
    busy(site.app[METRICS])
    swept(site.app[METRICS])
    await site.http.get("/api/none")
    status, text = await scraped(site)
    assert status == 200
    families = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert families >= {"process_cpu_seconds_total", "python_gc_collections_total"}
    assert len(DOCUMENTED) > 70
    assert families >= DOCUMENTED, DOCUMENTED - families
    samples = set(re.findall(r"^([a-z_]+?)(?:_bucket|_sum|_count)?[{ ]", text, re.M))
    unexplained = {name for name in DOCUMENTED if name not in samples}
    # The others have series only while somebody is behind.
    may_be_empty = NOT_YET | BEHIND
    if site.db.engine == "sqlite":
        may_be_empty.add("db_pool_connections")
    assert unexplained <= may_be_empty, unexplained
    done = subprocess.run(
        [need("promtool"), "check", "metrics"],
        input=text, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.slow
@ENGINE
async def test_what_a_client_chooses_makes_no_series(site: Site) -> None:
    registry = site.app[METRICS].registry
    before: set[str] = set()

    def series() -> set[str]:
        # Of requests: what runs beside them makes series of its own meanwhile.
        return set(re.findall(r"^(http_.*) \S+$", generate_latest(registry).decode(), re.M))

    for number in range(33):
        if number == 3:
            before = series()
        await site.http.request(f"X{number}PROPFIND"[:20], f"/api/{number}")
        await site.http.request("PROPFIND", f"/api/p{number}?q={number}")
        await site.http.get(f"/api/contacts/{number:024x}")
        await site.http.get(f"/console/{number}")
    text = generate_latest(registry).decode()
    assert len(before) > 50
    assert series() == before
    for part in ('method="other"', 'route="unmatched"', 'route="/api/contacts/{id}"'):
        assert part in text
    assert "PROPFIND" not in text


@ENGINE
async def test_who_may_read_it(db: Database) -> None:
    settings = Settings(allow=("127.0.0.1/32", "10.0.0.0/8"), token="hush")
    async with serving(db, Config(metrics=settings)) as site:
        outside = {"X-Forwarded-For": "203.0.113.9"}
        for headers, status in (
            ({}, 200),
            ({"X-Forwarded-For": "10.1.2.3"}, 200),
            (outside, 403),
            (outside | {"Authorization": "Bearer hush"}, 200),
            (outside | {"Authorization": "Bearer hus"}, 403),
            (outside | {"Authorization": "Bearer h\u00fcsh"}, 403),
            (outside | {"Authorization": "Basic hush"}, 403),
        ):
            got, text = await scraped(site, headers)
            assert got == status, headers
            if status == 403:
                assert "[metrics] allow" in text


@ENGINE
async def test_a_forwarded_request_is_outside_unless_its_proxy_is_trusted(db: Database) -> None:
    async with serving(db, Config(server=config.Server(trusted_proxies=()))) as site:
        assert (await scraped(site))[0] == 200
        assert (await scraped(site, {"X-Forwarded-For": "10.0.0.1"}))[0] == 403
        assert (await scraped(site, {"Forwarded": "for=10.0.0.1"}))[0] == 403
        assert (await scraped(site, {"Authorization": "Bearer "}))[0] == 200
        got, _ = await scraped(site, {"X-Forwarded-For": "x", "Authorization": "Bearer "})
        assert got == 403


def test_reports_land_where_they_belong() -> None:
    metrics = new_metrics()
    busy(metrics)
    metrics.request("api", "/api/contacts", "GET", 200, 0.003)
    metrics.request("api", "/api/contacts", "BREW", 503, 0.003)
    metrics.rejected("api", "too_large")
    value = metrics.registry.get_sample_value
    timed = {"surface": "api", "method": "GET", "le": "0.005"}
    assert value("http_server_request_duration_seconds_bucket", timed) == 1
    labels = {"surface": "api", "route": "/api/contacts", "method": "other", "status_class": "5xx"}
    assert value("http_server_requests_total", labels) == 1
    assert value("http_requests_rejected_total", {"surface": "api", "reason": "too_large"}) == 1
    contact = {"event_type": "contact.created"}
    assert value("outbox_events_total", contact) == 2
    assert value("outbox_deliveries_created_total", contact) == 4
    assert value("outbox_deliveries_left_out_total", contact) == 3
    assert value("webhook_attempts_total", {"attempt": "retry", "outcome": "timeout"}) == 1
    assert value("webhook_attempt_duration_seconds_count", {"result": "failure"}) == 1
    assert value("outbox_rescued_total", {"reason": "startup"}) == 2
    assert value("webhook_connections_total", {"reused": "true"}) == 1
    assert value("outbox_slots_busy") == 3
    assert value("db_errors_total", {"kind": "busy"}) == 1


def test_the_gauges_come_from_one_reading() -> None:
    metrics = new_metrics()
    reading = Gauges(oldest_ready_age=7.5)
    reading.states.update(ready=3, parked=2)
    reading.endpoints["active", "closed"] = 4
    reading.backed_up_at = 5_000_000
    reading.moves["leaving"], reading.move_changes, reading.closed_age = 2, 7, 12.5
    reading.backlogs = Backlogs(
        7, 5, 2, 30, 12,
        {"w1": Backlog("ana", 30, 90.0, 0.0)}, {"ana": Backlog("ana", 42, 90.0, 0.0)},
    )  # fmt: skip
    reading.ending = [Ending("w2", "bia", 9_000_000)]
    metrics.gauges(reading)
    value = metrics.registry.get_sample_value
    certificate = {"webhook": "w2", "owner": "bia"}
    assert value("webhook_client_certificate_end_timestamp_seconds", certificate) == 9
    assert value("outbox_deliveries", {"state": "ready"}) == 3
    assert value("outbox_deliveries", {"state": "held"}) == 0
    assert value("outbox_oldest_ready_age_seconds") == 7.5
    assert value("webhook_endpoints", {"state": "active", "circuit": "closed"}) == 4
    assert value("backup_last_success_timestamp_seconds") == 5
    assert value("app_owner_moves", {"state": "leaving"}) == 2
    assert value("app_owner_moves", {"state": "gone"}) == 0
    assert value("app_owner_move_changes") == 7
    assert value("app_owner_closed_seconds") == 12.5
    assert value("outbox_backlog_webhooks") == 7
    parts = [value("outbox_backlog_deliveries", {"part": part}) for part in ("largest", "rest")]
    assert parts == [30, 12]
    assert [value("outbox_backlog_owners", {"late": late}) for late in ("1m", "10m")] == [5, 2]
    webhook = {"webhook": "w1", "owner": "ana"}
    assert value("webhook_backlog_deliveries", webhook) == 30
    assert value("webhook_backlog_age_seconds", webhook) == 90
    assert value("owner_backlog_deliveries", {"owner": "ana"}) == 42
    assert value("owner_backlog_age_seconds", {"owner": "ana"}) == 90
    # Another node leads now.
    metrics.gauges(None)
    assert value("webhook_backlog_deliveries", webhook) is None
    assert value("outbox_backlog_owners", {"late": "1m"}) is None
    assert value("webhook_client_certificate_end_timestamp_seconds", certificate) is None
    assert math.isnan(value("backup_last_success_timestamp_seconds") or 0)
    assert value("app_owner_moves", {"state": "leaving"}) is None
    assert math.isnan(value("app_owner_move_changes") or 0)
    assert math.isnan(value("app_owner_closed_seconds") or 0)


class Values:
    """Samples of a collector by name and webhook."""

    def __init__(self, series: WebhookSeries) -> None:
        self.found: dict[tuple[str, str], float] = {}
        for family in series.collect():
            for sample in family.samples:
                key = (sample.name, sample.labels["webhook"])
                self.found[key] = self.found.get(key, 0.0) + sample.value

    def attempts(self, webhook_id: str) -> float | None:
        return self.found.get(("webhook_endpoint_attempts_total", webhook_id))


def test_counts_never_move_between_series() -> None:
    series = WebhookSeries(2)

    def attempt(webhook_id: str, now: float, times: int = 1, good: bool = True) -> None:
        for _ in range(times):
            outcome = "success" if good else "timeout"
            series.attempt(webhook_id, "h", outcome, 0.1, now=now, wall=5)  # type: ignore[arg-type] # one of two literals

    attempt("a", 0.0, 3)
    attempt("b", 0.0, 2)
    attempt("c", 1.0, 4)
    attempt("d", 1.0, 1, good=False)
    values = Values(series)
    assert [values.attempts(x) for x in ("a", "b", "c", "other")] == [3, 2, None, 5]
    attempt("b", IDLE_SECONDS - 1)
    attempt("c", IDLE_SECONDS - 1, 4)
    attempt("d", IDLE_SECONDS - 1, good=False)
    series.choose({}, IDLE_SECONDS)
    # One idle hour frees a's place; d failed, so it says more than c.
    attempt("c", IDLE_SECONDS)
    attempt("d", IDLE_SECONDS, good=False)
    values = Values(series)
    assert [values.attempts(x) for x in ("a", "b", "c", "d", "other")] == [None, 3, None, 1, 11]


def test_a_webhook_has_its_series_from_its_first_waiting_delivery_on() -> None:
    series = WebhookSeries(2)
    waiting = {"a": Waiting(2, 1.5), "b": Waiting(9, 9.0), "c": Waiting(4, 4.0)}
    # Places go to those at which most is waiting.
    assert set(series.choose(waiting, 0.0)) == {"b", "c"}
    series.refresh(
        waiting,
        {
            "b": WebhookHealth(False, None, "b.example", True),
            "c": WebhookHealth(True, 5_000_000, "c.example"),
        },
    )
    found = Values(series).found
    assert found["webhook_endpoint_pending", "b"] == 9
    assert found["webhook_endpoint_pending", "other"] == 2
    assert found["webhook_endpoint_up", "b"] == 0
    assert found["webhook_endpoint_up", "c"] == 1
    assert found["webhook_endpoint_window", "b"] == FAILING_WINDOW
    assert found["webhook_endpoint_window", "c"] == FIRST_WINDOW
    assert found["webhook_endpoint_info", "b"] == 1
    assert found["webhook_endpoint_last_success_timestamp_seconds", "c"] == 5
    # What waits keeps its place through idle hours, until a busy one needs it.
    assert set(series.choose(waiting, 9 * IDLE_SECONDS)) == {"b", "c"}
    series.attempt("d", "h", "timeout", 0.1, now=9 * IDLE_SECONDS, wall=5)
    assert "d" in series.choose(waiting, 9 * IDLE_SECONDS)
    assert len(series.choose(waiting, 9 * IDLE_SECONDS)) == 2


async def test_series_of_webhooks_outlive_a_restart(db: Database, db_url: str) -> None:
    """One fails and waits, one took something lately, one did so long ago."""
    now = db.clock.wall()

    async def fill(tx: Tx) -> None:
        await add_webhooks(tx, 1, 4)
        await add_waiting(tx, 1, 3, now)
        await tx.run("update webhooks set circuit = 'open' where id = $1", webhook_id(1))
        await tx.run("update lanes set failing = true where webhook_id = $1", webhook_id(1))
        for number, ago in ((2, 60), (3, 2 * round(IDLE_SECONDS))):
            at = now - ago * 1_000_000
            await tx.run(
                "update webhooks set last_success_at = $2 where id = $1", webhook_id(number), at
            )

    await db.write(fill)
    async with serving(db, Config(database=config.Database(url=db_url))) as site:
        value = site.app[METRICS].registry.get_sample_value
        first = {"webhook": webhook_id(1)}
        await until(lambda: value("webhook_endpoint_pending", first) is not None)
        assert value("webhook_endpoint_pending", first) == 3
        assert value("webhook_endpoint_up", first) == 0
        assert value("webhook_endpoint_window", first) == FAILING_WINDOW
        host = {"host": "example.com"}
        assert value("webhook_endpoint_info", first | host) == 1
        second = {"webhook": webhook_id(2)}
        assert value("webhook_endpoint_up", second) == 1
        assert value("webhook_endpoint_window", second) == FIRST_WINDOW
        assert value("webhook_endpoint_last_success_timestamp_seconds", second) == pytest.approx(
            now / 1e6 - 60
        )
        for number in (3, 4):
            assert value("webhook_endpoint_up", {"webhook": webhook_id(number)}) is None


def test_five_hundred_webhooks_stay_within_the_budget() -> None:
    metrics = new_metrics()
    outcomes: list[OutcomeName] = [
        "success", "throttled", "http_4xx", "http_5xx", "timeout", "connect_error", "dns_error",
        "tls_error", "protocol_error", "proxy_error", "blocked", "aborted", "http_3xx",
    ]  # fmt: skip
    for number in range(600):
        webhook = f"{number:024x}"
        for outcome in outcomes:
            metrics.attempt(webhook, f"host-{number}.example.com", "first", outcome, 0.2, 0.0)
        metrics.delivery_finished(webhook, "delivered", 0.1)
        metrics.window(webhook, 2)
    text = generate_latest(metrics.registry)
    series = [line for line in text.splitlines() if line.startswith(b"webhook_endpoint_")]
    assert len(series) <= 16_000
    assert len(text) <= 1_500_000
    rest = [line for line in text.splitlines() if not line.startswith((b"webhook_endpoint_", b"#"))]
    assert len(rest) <= 1_500


def test_a_node_that_does_not_lead_exports_no_readings() -> None:
    metrics = new_metrics()
    busy(metrics)
    reading = Gauges(oldest_ready_age=7.5, waiting={"w1": Waiting(3, 2.0)})
    reading.states["ready"] = 3
    metrics.gauges(reading)
    assert b'webhook_endpoint_pending{webhook="w1"} 3.0' in generate_latest(metrics.registry)
    metrics.gauges(None)
    text = generate_latest(metrics.registry).decode()
    for name in ("outbox_deliveries", "webhook_endpoint_pending", "webhook_endpoint_up"):
        assert f"\n{name}{{" not in text
    assert "outbox_oldest_ready_age_seconds NaN" in text
    assert 'webhook_endpoint_attempts_total{outcome="success",webhook="w1"} 1.0' in text

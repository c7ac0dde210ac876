"""The methods with which the rest of the product updates the metrics of `instruments`.

Values that a client can choose (a path, a method) are reduced to closed sets for labels.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

from aiohttp import web

from gateway.domain.accounts.credentials import Outcome as AuthOutcome
from gateway.domain.accounts.credentials import Scheme
from gateway.server.telemetry.instruments import Instruments
from gateway.server.telemetry.metric_table import Reason, Surface
from outbox.durations import SECOND
from outbox.errors import DatabaseFault
from outbox.observer import ClaimResult, Observer, Rescue
from outbox.queue.log.gauges import Gauges
from outbox.queue.log.waiting_counts import Waiting
from outbox.states import AttemptKind, Change, End, JobKind, JobState, OutcomeName

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MOVES = ("copying", "resting", "leaving", "arriving", "gone")
CLASSES = {1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}


def _pick(census: Callable[[], Mapping[str, int]], state: str) -> float:
    return census()[state]


class Metrics(Instruments, Observer):
    """The metrics of the web side and, as an Observer of the engine, of deliveries."""

    def count(self) -> None:
        """Put what was observed into the buckets of the histograms; call it every few seconds."""
        for timings in self.timings:
            timings.count()

    # For the web side.

    def request(
        self, surface: Surface, route: str, method: str, status: int, seconds: float
    ) -> None:
        """Count a completed request; `route` is a template or `unmatched`."""
        # Every page that is read has both, and their responses differ in the body alone.
        known = "GET" if method == "HEAD" else method if method in METHODS else "other"
        self._http[surface, known](seconds)
        self._requests[surface, route, known, CLASSES.get(status // 100, "5xx")].value += 1

    def rejected(self, surface: Surface, reason: Reason) -> None:
        """Count a request that a guard refused."""
        self._rejected[surface, reason].value += 1

    def operation(self, kind: str, outcome: str) -> None:
        """Count a GraphQL operation; `outcome` is ok, error or the limit that rejected it."""
        self._operations[kind, outcome].value += 1

    def authenticated(self, scheme: Scheme, outcome: AuthOutcome) -> None:
        """Count a checked credential."""
        self._auth[scheme, outcome].value += 1

    def mail(self, kind: str, result: str) -> None:
        """Count an attempt at a mail; `result` is sent, put_off or given_up."""
        self._mails[kind, result].value += 1

    def spans(self, result: str, count: int) -> None:
        """Count spans for the trace collector: "exported" or "dropped". Runs in any thread."""
        self._spans.labels(result).inc(count)

    def watch_connections(self, census: Callable[[], Mapping[str, int]]) -> None:
        """Call `census` at each scrape for the number of client sockets by state."""
        for state in census():
            self._sockets.labels(state).set_function(partial(_pick, census, state))

    def watch_pool(self, census: Callable[[], Mapping[str, int]]) -> None:
        """Call `census` at each scrape for the number of database connections by state."""
        for state in census():
            self._pool.labels(state).set_function(partial(_pick, census, state))

    def watch_key(self, created_at: Callable[[], int], refused: Callable[[], bool]) -> None:
        """Export the age of the key that encrypts secrets; it was made at `created_at()`.

        Microseconds, asked at each scrape, because the key may be replaced while the server runs.
        `refused` returns whether the file has become one that this server does not take.
        """
        self._file_refused.set_function(lambda: float(refused()))
        age = self._secret_age.labels("encryption")
        age.set_function(lambda: (self._clock.wall() - created_at()) / SECOND)

    def gauges(self, reading: Gauges | None) -> None:
        """Set a new reading of the outbox tables; None when another node reads them."""
        if reading is None:
            self._deliveries.clear()
            self._endpoints.clear()
            self._oldest.set(math.nan)
            self.backed_up.set(math.nan)
            self._moves.clear()
            self._move_changes.set(math.nan)
            self._closed_age.set(math.nan)
            self.backlogs.refresh(None)
            self.certificates.refresh(())
            self.webhooks.choose({}, self._clock.monotonic())
            self.webhooks.refresh(None, {})
            return
        for state in ("ready", "scheduled", "in_flight", "held", "parked"):
            self._deliveries.labels(state).set(reading.states[state])
        self._oldest.set(reading.oldest_ready_age)
        self.backed_up.set((reading.backed_up_at or 0) / SECOND)
        for move in MOVES:
            self._moves.labels(move).set(reading.moves[move])
        self._move_changes.set(reading.move_changes)
        self._closed_age.set(reading.closed_age)
        self.backlogs.refresh(reading.backlogs)
        self.certificates.refresh(reading.ending)
        for state in ("active", "paused", "disabled"):
            for circuit in ("closed", "open"):
                self._endpoints.labels(state, circuit).set(reading.endpoints[state, circuit])
        self.webhooks.refresh(reading.waiting, reading.standing)

    def choose(self, waiting: Mapping[str, Waiting]) -> list[str]:
        """Return the webhooks that get their own series, given the waiting deliveries of each."""
        return self.webhooks.choose(waiting, self._clock.monotonic())

    # Of the engine; outbox.observer.Observer documents each method.

    def purged(self, table: str, count: int) -> None:
        self._purged[(table,)].value += count

    def swept(self, table: str) -> None:
        self._swept.labels(table).set(self._clock.wall() / SECOND)

    def job_made(self, kind: JobKind, count: int) -> None:
        self._jobs_made[(kind,)].value += count

    def job_ended(self, kind: JobKind, state: JobState) -> None:
        self._jobs_ended[kind, state].value += 1

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None:
        self._transactions[(op,)](seconds)

    def fault(self, kind: DatabaseFault) -> None:
        if kind == "full":
            self.found_full = self._clock.monotonic()
        self._faults[(kind,)].value += 1

    def tick(self) -> None:
        self.ticked = self._clock.monotonic()
        self.tick_at = self._clock.wall() / SECOND

    def fanned_out(self, events: Mapping[str, int], deliveries: Mapping[str, int]) -> None:
        for name, count in events.items():
            self._events[(name,)].value += count
        for name, count in deliveries.items():
            self._created[(name,)].value += count

    def left_out(self, events: Mapping[str, int]) -> None:
        for name, count in events.items():
            self._left_out[(name,)].value += count

    def claimed(self, result: ClaimResult, seconds: float) -> None:
        self._claims[(result,)].value += 1
        self._claim(seconds)

    def started(self, kind: AttemptKind, lag: float, limited: bool) -> None:
        attempt = "retry" if kind == "retry" else "limited" if limited else "first"
        self._lag[(attempt,)](max(lag, 0.0))

    def slots(self, total: int, busy: int) -> None:
        self.slots_total, self.slots_busy = total, busy

    def attempt(
        self, webhook_id: str, host: str, kind: AttemptKind, outcome: OutcomeName, seconds: float,
        at: float,
    ) -> None:  # fmt: skip
        self._attempts[kind, outcome].value += 1
        self._attempt[("success" if outcome == "success" else "failure",)](seconds)
        # The drain's last turn is near enough: this is for webhooks without attempts for an hour.
        self.webhooks.attempt(webhook_id, host, outcome, seconds, now=self.ticked, wall=at)

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        self._finished[(end,)].value += 1
        if latency is not None:
            self._latency(max(latency, 0.0))
        self.webhooks.finished(webhook_id, end)

    def rescued(self, reason: Rescue, count: int) -> None:
        self._rescued[(reason,)].value += count

    def unreadable(self, webhook_id: str) -> None:
        self._unreadable.inc()

    def window(self, webhook_id: str, width: int) -> None:
        self.webhooks.window(webhook_id, width)

    def connection(self, reused: bool) -> None:
        self._connection[("true" if reused else "false",)].value += 1

    def transition(self, to: Change, reason: str) -> None:
        self._transitions[to, reason].value += 1


METRICS = web.AppKey("METRICS", Metrics)

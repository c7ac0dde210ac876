"""Rate limits: token buckets for callers and addresses, and the RateLimit headers.

Levels are those of this process, or shared by the processes of a node
(gateway.server.processes.shared_counters). gateway.server.http.client_connections limits time and
size of connections.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from aiohttp import web

from gateway.domain.accounts.counter_store import CounterStore, NewCounterStore, OwnCounters
from gateway.domain.accounts.credentials import AuthObserver
from gateway.domain.accounts.networks import WORTHS, networks_of
from gateway.records.errors import Refusal, rate_limited
from gateway.server.config import Limits
from outbox.clock import Clock

Kind = Literal["read", "write"]
Costly = Literal["filtered", "searched", "reported"]
COSTS: Mapping[Costly, int] = {"filtered": 2, "searched": 5, "reported": 10}
"""The cost in tokens of reads that scan more than a page: a list with filters or another order, a
search (or the feed of selected events), a report."""
Public = Literal["form", "coupon", "exchange"]
PUBLIC: Mapping[Public, str] = {
    "form": "Too many forms from this address; try again later.",
    "coupon": "Too many unknown coupon codes from this address; try again later.",
    "exchange": "Too many failed exchanges from this address; try again later.",
}
"""What anybody may send, forms_per_minute of each from an address: how it is refused. Of codes,
coupons and those of an exchange, only wrong ones count."""
EXAMINATIONS = 8
"""Examinations of receivers at the same time, of all accounts."""
EXAMINING_SECONDS = 60.0
"""Longer than an examination takes; then the account of a process that has died may start one."""


REFUSED_PER_SECOND = 10
REFUSED_AT_ONCE = 20
REST_SECONDS = 0.25
"""How long a response waits that refuses one more request of an account than these: a client that
asks again at once, on many connections, otherwise keeps the event loop busy with refusals."""


class Buckets:
    """One bucket per holder: `rate` new tokens per second up to `depth`. Rate 0 is no limit."""

    def __init__(
        self, rate: float, depth: float, clock: Clock, levels: CounterStore | None = None
    ) -> None:
        self.rate = rate
        self.depth = depth
        self._clock = clock
        self._levels = levels or OwnCounters()

    def take(self, holder: str, tokens: int = 1) -> tuple[float, float]:
        """Take tokens; return the rest (negative: too few) and the seconds until there are enough.

        A request takes one token less than `depth` at most, because its first one is taken when it
        comes, before its cost is known.
        """
        if not self.rate:
            return self.depth, 0.0
        amount = min(float(tokens), max(1.0, self.depth - 1))
        now = self._clock.monotonic()
        level, then = self._levels.get(holder) or (self.depth, now)
        level = min(self.depth, level + (now - then) * self.rate)
        if level < amount:
            return -1.0, (amount - level) / self.rate
        self._levels.put(holder, level - amount, now)
        return level - amount, 0.0

    def owe(self, holder: str, tokens: int) -> None:
        """Take tokens, those too that come later; at most twice `depth`."""
        if not self.rate or tokens <= 0:
            return
        now = self._clock.monotonic()
        level, then = self._levels.get(holder) or (self.depth, now)
        level = min(self.depth, level + (now - then) * self.rate)
        self._levels.put(holder, max(level - tokens, -self.depth), now)

    def give_back(self, holder: str, tokens: int = 1) -> None:
        """Return tokens that were taken."""
        if (found := self._levels.get(holder)) is not None:
            level, then = found
            self._levels.put(holder, min(self.depth, level + tokens), then)


class RateLimits:
    """The limits of `[limits]` in config.toml."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        observer: AuthObserver,
        keep: NewCounterStore = OwnCounters,
        processes: int = 1,
    ) -> None:
        def buckets(name: str, rate: float, depth: float) -> Buckets:
            return Buckets(rate, depth, clock, keep(name))

        def by_worth(name: str, per_minute: int) -> dict[int, Buckets]:
            return {
                worth: buckets(f"{name} {worth}", per_minute * worth / 60, per_minute * worth)
                for worth in WORTHS
            }

        self._observer = observer
        reads, writes = limits.read_per_second, limits.write_per_second
        self._callers = {
            "read": buckets("read", reads, reads * limits.burst),
            "write": buckets("write", writes, writes * limits.burst),
        }
        self._refused = Buckets(REFUSED_PER_SECOND, REFUSED_AT_ONCE, clock)
        pages = limits.pages_per_second
        self._pages = buckets("pages", pages, pages * limits.burst)
        self.policies: dict[str, str] = {
            kind: f'"{kind}";q={buckets.rate:g};w=1' for kind, buckets in self._callers.items()
        }
        self._examining = buckets("examination", 1 / EXAMINING_SECONDS, 1)
        self._examinations = max(1, EXAMINATIONS // processes)
        visits = limits.storefront_per_minute
        self._visits = by_worth("visit", visits)
        self.policies["storefront"] = f'"storefront";q={visits};w=60'
        forms = limits.forms_per_minute
        self._public = {kind: buckets(kind, forms / 60, forms) for kind in PUBLIC}
        self._sign_in = by_worth("sign in", limits.sign_in_per_minute)

    def call(self, kind: Kind, holder: str, tokens: int = 1) -> str | None:
        """Count an API call; return the `RateLimit` header, None without a limit.

        Raise rate_limited.
        """
        buckets = self._callers[kind]
        if not buckets.rate:
            return None
        rest, wait = buckets.take(holder, tokens)
        if rest >= 0:
            # The bucket may contain a burst, but the header promises the rest of this second.
            return f'"{kind}";r={int(min(rest, buckets.rate - 1))};t=1'
        raise self._exceeded(kind, f"{buckets.rate:g} {kind}s per second", wait)

    def _exceeded(self, name: str, limit: str, wait: float) -> Refusal:
        retry = math.ceil(wait)
        return rate_limited(
            f"The limit is {limit}; try again after {retry} s.",
            retry,
            rate_limit=f'"{name}";r=0;t={retry}',
            rate_limit_policy=self.policies[name],
        )

    def return_call(self, kind: Kind, holder: str, tokens: int) -> None:
        """Take back the count of an API call that was refused after its first tokens."""
        self._callers[kind].give_back(holder, tokens)

    def read_more(self, owner_id: str, tokens: int) -> None:
        """Count what a read turned out to be; the calls that follow pay for it."""
        self._callers["read"].owe(owner_id, tokens)

    def refused(self, owner_id: str) -> float:
        """Count a refused request of an account; return the seconds that its response waits."""
        return REST_SECONDS if self._refused.take(owner_id)[0] < 0 else 0.0

    def page(self, owner_id: str, tokens: int = 1) -> int:
        """Count pages of the console of an account; return the seconds to wait, 0 for none."""
        return math.ceil(self._pages.take(owner_id, tokens)[1])

    def test(self, owner_id: str, tokens: int = 1) -> None:
        """Count a test event of an account in the console like a write. Raise rate_limited."""
        # Apart from the writes of the API, which an integration of the account may need.
        self.call("write", f"console {owner_id}", tokens)

    @contextmanager
    def examination(self, owner_id: str, seconds: int = 1) -> Iterator[None]:
        """Count an examination of a receiver, as many tokens as `seconds` allow of test events.

        An account runs one at a time, the node EXAMINATIONS: each holds a connection for as long as
        the receiver takes. Raise rate_limited.
        """
        if not self._examinations or self._examining.take(owner_id)[0] < 0:
            raise rate_limited("Another examination is running; try again when it has ended.", 1)
        self._examinations -= 1
        try:
            self.test(owner_id, max(1, seconds * int(self._callers["write"].rate)))
            yield
        finally:
            self._examinations += 1
            self._examining.give_back(owner_id)

    def visit(self, session: str | None, address: str, requests: int = 1) -> tuple[str, str] | None:
        """Count storefront requests; return its RateLimit headers, None without a limit.

        Visitors of one address each have a session of their own, but a client can invent sessions,
        so all sessions of an address share a bucket of ten times the size. Raise rate_limited.
        """
        own, shared = self._visits[1], self._visits[WORTHS[-1]]
        if not own.rate:
            return None
        rest, wait = own.take(address if session is None else f"{address} {session}", requests)
        if rest >= 0 and session is not None:
            shared_rest, wait = shared.take(address, requests)
            rest = min(rest, shared_rest)
        policy = self.policies["storefront"]
        if rest >= 0:
            return f'"storefront";r={int(rest)};t=60', policy
        raise self._exceeded("storefront", f"{own.depth:g} requests per minute", wait)

    def visit_more(self, session: str | None, address: str, requests: int) -> None:
        """Count what a storefront response turned out to be, as `visit` does."""
        own, shared = self._visits[1], self._visits[WORTHS[-1]]
        own.owe(address if session is None else f"{address} {session}", requests)
        if session is not None:
            shared.owe(address, requests)

    def sign_in(self, address: str) -> None:
        """Count a sign-in attempt from an address and its networks.

        Raise rate_limited.
        """
        # The narrowest network first, so that a refused attempt does not count for its neighbours.
        for network, worth in networks_of(address):
            rest, wait = self._sign_in[worth].take(network)
            if rest < 0:
                self._observer.authenticated("password", "throttled")
                raise rate_limited(
                    "Too many sign-in attempts from this address; try again later.", wait
                )

    def count(self, kind: Public, share: str) -> None:
        """Count what anybody may send from an address. Raise rate_limited."""
        rest, wait = self._public[kind].take(share)
        if rest < 0:
            raise rate_limited(PUBLIC[kind], wait)

    def take_back(self, kind: Public, share: str) -> None:
        """Take back the count of a code that exists, or of a form that was not saved."""
        self._public[kind].give_back(share)


LIMITS = web.AppKey("LIMITS", RateLimits)
RATE_LIMIT: web.RequestKey[tuple[str, str]] = web.RequestKey("RATE_LIMIT")
CHARGED: web.RequestKey[int] = web.RequestKey("CHARGED")
"""The tokens that a request has taken so far."""

"""Checks e-mail addresses and passwords for every door, and delays sign-ins after wrong ones.

It never locks an account. It counts by e-mail address, whether an account exists or not, so that
the delay does not reveal which accounts exist. A client network (networks.share_of) with an earlier
successful sign-in to the account has its own count, so that attempts from elsewhere do not delay
it.
"""

import hashlib

from gateway.domain.accounts import users
from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.credentials import AuthObserver
from gateway.domain.accounts.networks import share_of
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.users import LONGEST_EMAIL
from gateway.records.errors import Refusal, rate_limited
from gateway.records.values.emails import fold_email
from gateway.records.values.patterns import NOT_TEXT
from outbox.clock import Clock
from outbox.database.transaction import Database, Row


class SignIn:
    """The check of sign-ins, which counts each attempt once."""

    def __init__(
        self,
        db: Database,
        passwords: Passwords,
        observer: AuthObserver,
        keep: NewCounterStore = OwnCounters,
    ) -> None:
        self._db = db
        self._passwords = passwords
        self._observer = observer
        self._attempts = SignInDelays(db.clock, keep)

    async def check(self, email: str, password: str, address: str) -> Row | None:
        """Return the user, or None for a wrong password, a disabled or an unknown user.

        `address` is the client's. Raises rate_limited after wrong passwords, and unavailable.
        """
        share = share_of(address)
        try:
            self._attempts.begin(email, share)
        except Refusal:
            self._observer.authenticated("password", "throttled")
            raise
        try:
            user = None if NOT_TEXT.search(email) else await self._db.read(users.by_email, email)
            stored = None if user is None or user["disabled_at"] is not None else user
            password_hash = None if stored is None else stored["password_hash"]
            right, better = await self._passwords.check(password_hash, password, share)
            if better is not None and stored is not None:
                await self._db.write(users.rehash, stored["id"], stored["password_hash"], better)
        except BaseException:
            self._attempts.unjudged(email, share)
            raise
        self._observer.authenticated("password", "ok" if right else "bad")
        if not right or stored is None:
            return None
        self._attempts.right(email, share)
        return stored


DELAYS = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds between two attempts, by the number of wrong ones in a row; the last value repeats."""
FORGOTTEN_SECONDS = 900.0
NEVER = float("-inf")


class SignInDelays:
    """Counts of attempts; an attempt counts before its check, so that parallel ones all count."""

    def __init__(self, clock: Clock, keep: NewCounterStore = OwnCounters) -> None:
        self._clock = clock
        self._wrong = keep("wrong passwords")
        self._known = keep("known networks")

    def begin(self, email: str, share: str) -> None:
        """Count an attempt as wrong until `right` or `unjudged`. Raises rate_limited."""
        holder = self._holder(email, share)
        now = self._clock.monotonic()
        wrong, last = self._wrong.get(holder) or (0, now)
        if now - last >= FORGOTTEN_SECONDS:
            wrong = 0
        wait = last + DELAYS[min(int(wrong), len(DELAYS) - 1)] - now
        if wait > 0:
            raise rate_limited("Too many wrong passwords; wait before you try again.", wait)
        self._wrong.put(holder, wrong + 1, now)

    def right(self, email: str, share: str) -> None:
        """Record a right password: reset the account's count and remember the client's network."""
        for holder in (self._holder(email, share), _digest(email)):
            if self._wrong.get(holder) is not None:
                self._wrong.put(holder, 0, NEVER)
        self._known.put(_digest(email, share), 1, self._clock.monotonic())

    def unjudged(self, email: str, share: str) -> None:
        """Remove an attempt whose password was not checked."""
        holder = self._holder(email, share)
        wrong, last = self._wrong.get(holder) or (0, 0.0)
        if wrong:
            self._wrong.put(holder, wrong - 1, last)

    def _holder(self, email: str, share: str) -> str:
        pair = _digest(email, share)
        return _digest(email) if self._known.get(pair) is None else pair


def _digest(email: str, *more: str) -> str:
    """Return a key of fixed size; all addresses above the maximum length share one."""
    folded = fold_email(email) if len(email) <= LONGEST_EMAIL else ""
    text = "\0".join((folded, *more))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]

"""Delays sign-ins after wrong passwords of an account, and never locks the account.

It counts by e-mail address, whether an account exists or not, so that the delay does not reveal
which accounts exist. A client network (networks.share_of) with an earlier successful sign-in to the
account has its own count, so that attempts from elsewhere do not delay it. The counts are in the
memory of this process.
"""

import hashlib
import math
from collections import OrderedDict

from gateway.domain.accounts.users import LONGEST_EMAIL, fold_email
from gateway.records.errors import Refusal
from outbox.clock import Clock

DELAYS = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds between two attempts, by the number of wrong ones in a row; the last value repeats."""
FORGOTTEN_SECONDS = 900.0
REMEMBERED_MOST = 50_000
KNOWN_MOST = 10_000


class Attempts:
    """Counts of attempts; an attempt counts before its check, so that parallel ones all count."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[bytes, tuple[int, float]] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, email: str, share: str) -> None:
        """Count an attempt as wrong until `right` or `unjudged`. Raises rate_limited."""
        holder = self._holder(email, share)
        now = self._clock.monotonic()
        wrong, last = self._wrong.get(holder, (0, now))
        if now - last >= FORGOTTEN_SECONDS:
            wrong = 0
        wait = last + DELAYS[min(wrong, len(DELAYS) - 1)] - now
        if wait > 0:
            raise Refusal(
                "rate_limited",
                "Too many wrong passwords; wait before you try again.",
                facts={"retry_after": math.ceil(wait)},
            )
        self._wrong[holder] = (wrong + 1, now)
        self._wrong.move_to_end(holder)
        if len(self._wrong) > REMEMBERED_MOST:
            self._wrong.popitem(last=False)

    def right(self, email: str, share: str) -> None:
        """Record a right password: reset the account's count and remember the client's network."""
        self._wrong.pop(self._holder(email, share), None)
        self._wrong.pop(_digest(email), None)
        pair = _digest(email, share)
        self._known[pair] = None
        self._known.move_to_end(pair)
        if len(self._known) > KNOWN_MOST:
            self._known.popitem(last=False)

    def unjudged(self, email: str, share: str) -> None:
        """Remove an attempt whose password was not checked."""
        holder = self._holder(email, share)
        wrong, last = self._wrong.get(holder, (0, 0.0))
        if wrong:
            self._wrong[holder] = (wrong - 1, last)

    def _holder(self, email: str, share: str) -> bytes:
        pair = _digest(email, share)
        return pair if pair in self._known else _digest(email)


def _digest(email: str, *more: str) -> bytes:
    """Return a key of fixed size; all addresses above the maximum length share one."""
    folded = fold_email(email) if len(email) <= LONGEST_EMAIL else ""
    text = "\0".join((folded, *more))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]

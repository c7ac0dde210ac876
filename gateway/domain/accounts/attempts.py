"""Wrong passwords of an account: each makes the next try wait longer, and none locks it.

What is counted is the address that was typed in, whether there is such an account or not, so that
nobody learns from it who has one. A share of the network (networks.share_of) from which somebody
has signed in to the account before is counted by itself: a stranger's tries do not hold it up.
All of it is in the memory of this process.
"""

import hashlib
import math
from collections import OrderedDict

from gateway.domain.accounts.users import LONGEST_EMAIL, fold_email
from gateway.records.errors import Refusal
from outbox.clock import Clock

DELAYS = (0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds from a try to the next one, by the number of wrong ones in a row; then the last."""
FORGOTTEN_SECONDS = 900.0
REMEMBERED_MOST = 50_000
KNOWN_MOST = 10_000


class Attempts:
    """Counts tries before they are judged, so that many at once are not one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[bytes, tuple[int, float]] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, email: str, share: str) -> None:
        """Count a try, as wrong until it is told otherwise. Raises rate_limited."""
        holder = self._holder(email, share)
        now = self._clock.monotonic()
        wrong, last = self._wrong.get(holder, (0, now))
        if now - last >= FORGOTTEN_SECONDS:
            wrong = 0
        wait = last + DELAYS[min(wrong, len(DELAYS) - 1)] - now
        if wait > 0:
            raise Refusal(
                "rate_limited",
                "Too many wrong passwords; wait a little before the next try.",
                facts={"retry_after": math.ceil(wait)},
            )
        self._wrong[holder] = (wrong + 1, now)
        self._wrong.move_to_end(holder)
        if len(self._wrong) > REMEMBERED_MOST:
            self._wrong.popitem(last=False)

    def right(self, email: str, share: str) -> None:
        """The password was right: the account's wrong ones are forgotten, its share is known."""
        self._wrong.pop(self._holder(email, share), None)
        self._wrong.pop(_digest(email), None)
        pair = _digest(email, share)
        self._known[pair] = None
        self._known.move_to_end(pair)
        if len(self._known) > KNOWN_MOST:
            self._known.popitem(last=False)

    def unjudged(self, email: str, share: str) -> None:
        """The password was not looked at: the try does not count."""
        holder = self._holder(email, share)
        wrong, last = self._wrong.get(holder, (0, 0.0))
        if wrong:
            self._wrong[holder] = (wrong - 1, last)

    def _holder(self, email: str, share: str) -> bytes:
        pair = _digest(email, share)
        return pair if pair in self._known else _digest(email)


def _digest(email: str, *more: str) -> bytes:
    """A key of one size, whatever was typed in; longer addresses than there can be are one."""
    folded = fold_email(email) if len(email) <= LONGEST_EMAIL else ""
    text = "\0".join((folded, *more))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]

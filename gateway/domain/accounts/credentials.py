"""Authenticates the caller of a key or token, without HTTP.

It caches a result for at most a second, so a key revoked on any node stops working within that
second on every node, and a busy key costs one query a second.
"""

from collections import OrderedDict
from typing import Literal, Protocol

from gateway.domain.accounts import keys, tokens
from gateway.records.access import Actor
from outbox.database.transaction import Database

Scheme = Literal["api_key", "bearer", "password", "session"]
Outcome = Literal["ok", "bad", "throttled", "expired", "revoked"]

Known = OrderedDict[bytes, tuple[float, Actor]]
REMEMBERED_SECONDS = 0.9
REMEMBERED_MOST = 10_000


class AuthObserver(Protocol):
    """A counter of authentications."""

    def authenticated(self, scheme: Scheme, outcome: Outcome) -> None: ...


class Credentials:
    """The authenticator of API keys and tokens; it also records when keys are used."""

    def __init__(self, db: Database, observer: AuthObserver) -> None:
        self._db = db
        self._clock = db.clock
        self._observer = observer
        self._known: Known = OrderedDict()
        self._used: dict[str, int] = {}

    async def recognise(self, text: str, scheme: Scheme) -> Actor | None:
        """Return the actor of a key or token, or None when it is invalid."""
        if not text.isascii():
            # Keys and tokens are ASCII, and text with lone surrogates has no digest.
            self._observer.authenticated(scheme, "bad")
            return None
        digest = keys.digest_of(text)
        now = self._clock.monotonic()
        remembered = self._known
        known = remembered.get(digest)
        if known is None or known[0] <= now:
            outcome, actor = await self._look_up(text, digest)
            self._observer.authenticated(scheme, outcome)
            if actor is None:
                remembered.pop(digest, None)
                return None
            # The time starts before the query, because its result may already be outdated.
            _remember(remembered, digest, now + REMEMBERED_SECONDS, actor)
        else:
            actor = known[1]
            self._observer.authenticated(scheme, "ok")
        if actor.key_id is not None:
            self._used[actor.key_id] = self._clock.wall()
        return actor

    def forget(self) -> None:
        """Clear the cache after a revocation or a change on this node."""
        # A look-up that runs now keeps the old mapping, so its result is not remembered here.
        self._known = OrderedDict()

    async def flush(self) -> None:
        """Record when keys were last used; called once a minute and at shutdown."""
        used, self._used = self._used, {}
        if used:
            await self._db.write(keys.touch, list(used.items()))

    async def _look_up(self, text: str, digest: bytes) -> tuple[Outcome, Actor | None]:
        is_key = keys.well_formed(text)
        if not is_key and not text.startswith(tokens.PREFIX):
            return "bad", None
        row = await self._db.read(keys.recognise if is_key else tokens.recognise, digest)
        if row is None:
            return "bad", None
        if row["disabled_at"] is not None or (is_key and row["revoked_at"] is not None):
            return "revoked", None
        if row["expires_at"] is not None and row["expires_at"] <= self._clock.wall():
            return "expired", None
        if is_key:
            scopes = keys.scopes_of(row)
            return "ok", Actor(row["owner_id"], "api_key", scopes, row["id"], row["timezone"])
        return "ok", Actor(row["owner_id"], "bearer", zone=row["timezone"])


def _remember(known: Known, digest: bytes, until: float, actor: Actor) -> None:
    known[digest] = (until, actor)
    known.move_to_end(digest)
    if len(known) > REMEMBERED_MOST:
        known.popitem(last=False)

"""Authenticates the caller of a key or token, without HTTP.

It caches a result for at most a second, so a key revoked on any node stops working within that
second on every node, and a busy key costs one query a second.
"""

from collections import OrderedDict
from typing import Literal, Protocol

from gateway.domain.accounts import api_keys, tokens
from gateway.records.audit import Actor
from outbox.database.transaction import Database
from outbox.ids import digest_of

Scheme = Literal["api_key", "bearer", "password", "session"]
Outcome = Literal["ok", "bad", "throttled", "expired", "revoked"]

CachedActors = OrderedDict[str, tuple[float, Actor]]
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
        self._known: CachedActors = OrderedDict()
        self._used: dict[str, int] = {}

    def remembered(self, text: str, scheme: Scheme) -> Actor | None:
        """Return the actor of a key or token that was recognised in the last second, or None."""
        entry = self._known.get(text)
        if entry is None or entry[0] <= self._clock.monotonic():
            return None
        return self._accepted(entry[1], scheme)

    async def recognise(self, text: str, scheme: Scheme) -> Actor | None:
        """Return the actor of a key or token, or None when it is invalid."""
        cached = self.remembered(text, scheme)
        if cached is not None:
            return cached
        if not text.isascii():
            # Keys and tokens are ASCII, and text with lone surrogates has no digest.
            self._observer.authenticated(scheme, "bad")
            return None
        now = self._clock.monotonic()
        remembered = self._known
        outcome, actor = await self._look_up(text, digest_of(text))
        if actor is None:
            self._observer.authenticated(scheme, outcome)
            remembered.pop(text, None)
            return None
        # The time starts before the query, because its result may already be outdated.
        _remember(remembered, text, now + REMEMBERED_SECONDS, actor)
        return self._accepted(actor, scheme)

    def forget(self) -> None:
        """Clear the cache after a revocation or a change on this node."""
        # A look-up that runs now keeps the old mapping, so its result is not remembered here.
        self._known = OrderedDict()

    async def flush(self) -> None:
        """Record when keys were last used; called once a minute and at shutdown."""
        used, self._used = self._used, {}
        if used:
            await self._db.write(api_keys.touch, list(used.items()))

    def _accepted(self, actor: Actor, scheme: Scheme) -> Actor:
        self._observer.authenticated(scheme, "ok")
        if actor.key_id is not None:
            self._used[actor.key_id] = self._clock.wall()
        return actor

    async def _look_up(self, text: str, digest: bytes) -> tuple[Outcome, Actor | None]:
        is_key = api_keys.well_formed(text)
        if not is_key and not text.startswith(tokens.PREFIX):
            return "bad", None
        row = await self._db.read(api_keys.recognise if is_key else tokens.recognise, digest)
        if row is None:
            return "bad", None
        if row["disabled_at"] is not None or (is_key and row["revoked_at"] is not None):
            return "revoked", None
        if row["expires_at"] is not None and row["expires_at"] <= self._clock.wall():
            return "expired", None
        if is_key:
            scopes = api_keys.scopes_of(row)
            return "ok", Actor(
                row["owner_id"], "api_key", scopes, row["id"], row["timezone"],
                resources=api_keys.resources_of(row),
            )  # fmt: skip
        return "ok", Actor(row["owner_id"], "bearer", zone=row["timezone"])


def _remember(cache: CachedActors, text: str, until: float, actor: Actor) -> None:
    cache[text] = (until, actor)
    cache.move_to_end(text)
    if len(cache) > REMEMBERED_MOST:
        cache.popitem(last=False)

"""Checks e-mail addresses and passwords for every door."""

from gateway.domain.accounts import users
from gateway.domain.accounts.attempts import Attempts
from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.credentials import AuthObserver
from gateway.domain.accounts.networks import share_of
from gateway.domain.accounts.passwords import Passwords
from gateway.records.errors import Refusal
from gateway.records.values.patterns import NOT_TEXT
from outbox.database.transaction import Database


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
        self._attempts = Attempts(db.clock, keep)

    async def check(self, email: str, password: str, address: str) -> str | None:
        """Return the user's id, or None for a wrong password, a disabled or an unknown user.

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
            right = await self._passwords.verify(
                None if stored is None else stored["password_hash"], password, share
            )
        except BaseException:
            self._attempts.unjudged(email, share)
            raise
        self._observer.authenticated("password", "ok" if right else "bad")
        if not right or stored is None:
            return None
        self._attempts.right(email, share)
        return str(stored["id"])

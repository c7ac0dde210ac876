"""Hashes and checks the passwords of customers, with a queue of their own.

All customers together are one client of gateway.domain.accounts.passwords, with at most one hash in
its queue: however many sign-ins customers send, a sign-in to the console waits for one of them.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.domain.accounts.counter_store import AttemptLimit, NewCounterStore, OwnCounters
from gateway.domain.accounts.networks import share_of
from gateway.domain.accounts.opaque_strings import forbidden
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.users import LONGEST_EMAIL
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.customers import Credential
from gateway.records.errors import Fault, Refusal
from gateway.records.values.emails import fold_email
from outbox.database.fair_limit import Crowded, FairSemaphore
from outbox.database.transaction import Database

SHORTEST, LONGEST = 6, 128
"""Length of a password in code points."""
HOLDER = "customers"
WAITING = 16
"""Most waiting hashes of one client."""
TRIES, TRIES_SECONDS = 10, 900.0


class CustomerPasswords:
    """The check of sign-ins of customers."""

    def __init__(
        self, db: Database, passwords: Passwords, most: int, keep: NewCounterStore = OwnCounters
    ) -> None:
        """Let an address try `most` wrong passwords of all accounts in TRIES_SECONDS; 0: any."""
        self._db = db
        self._passwords = passwords
        self._places = FairSemaphore(1, each=1, waiting=WAITING)
        self._tries = AttemptLimit(
            db.clock, TRIES, TRIES_SECONDS, "Too many sign-ins; wait before you try again.", keep
        )
        # One password for many accounts is guessing, too.
        self._all_tries = AttemptLimit(
            db.clock, most or sys.maxsize, TRIES_SECONDS,
            "Too many wrong passwords from this address; wait before you try again.", keep,
        )  # fmt: skip

    async def check(self, store_id: str, email: str, password: str, address: str) -> Credential:
        """Return the account of a right password.

        Raises invalid_credentials, rate_limited, unavailable. An unknown email, a wrong password
        and an account without a password get the same message after the same time.
        """
        holder = (store_id, _folded(email))
        self._begin(address, *holder)
        try:
            credential = await self._db.read(customers.by_email, store_id, email)
            stored = None if credential is None else credential.password_hash
            account = "" if credential is None else credential.customer_id
            right, stored = await self._verified(account, stored, password, address)
        except BaseException:
            self._tries.undo(address, *holder)
            self._all_tries.undo(address)
            raise
        if not right or credential is None:
            raise invalid_credentials()
        self._tries.forgive(address, *holder)
        self._all_tries.undo(address)
        # The sign-in compares it with what is stored then.
        credential.password_hash = stored
        return credential

    async def check_own(
        self, store_id: str, customer_id: str, password: str, address: str, field: str
    ) -> str:
        """Check the password of a customer who is signed in, sent as `field`; return its hash.

        Raises invalid_credentials, rate_limited, unavailable.
        """
        holder = (store_id, customer_id)
        self._begin(address, *holder)
        try:
            stored = await self._db.read(customers.password_hash, customer_id)
            right, stored = await self._verified(customer_id, stored, password, address)
        except BaseException:
            self._tries.undo(address, *holder)
            self._all_tries.undo(address)
            raise
        if not right or stored is None:
            raise invalid_credentials(field)
        self._tries.forgive(address, *holder)
        self._all_tries.undo(address)
        return stored

    async def hash(self, password: str, address: str) -> str:
        """Return the hash of a new password. Raises unavailable."""
        async with self._turn(address):
            return await self._passwords.hash(password, HOLDER)

    async def _verified(
        self, customer_id: str, stored: str | None, password: str, address: str
    ) -> tuple[bool, str | None]:
        """Return whether a password is right, and the hash that is stored now."""
        # No password contains what UTF-8 cannot express.
        text = password.encode("utf-8", "replace").decode()
        async with self._turn(address):
            right, better = await self._passwords.check(stored, text, HOLDER)
        if better is None or stored is None:
            return right, stored
        await self._db.write(customers.rehash, customer_id, stored, better)
        return right, better

    def _begin(self, address: str, *holder: str) -> None:
        """Count a try for an account and for the address. Raises rate_limited."""
        self._tries.begin(address, *holder)
        try:
            self._all_tries.begin(address)
        except Refusal:
            self._tries.undo(address, *holder)
            raise

    @asynccontextmanager
    async def _turn(self, address: str) -> AsyncIterator[None]:
        holder = share_of(address)
        try:
            await self._places.take(holder)
        except Crowded:
            raise Refusal(
                "unavailable",
                "Too many sign-ins at once; try again later.",
                facts={"retry_after": 1},
            ) from None
        try:
            yield
        finally:
            self._places.leave(holder)


def fault_of(password: str, field: str) -> Refusal | None:
    """Return the refusal of a new password that is too short, too long or no text, or None."""
    if len(password) < SHORTEST:
        message = f"Send at least {SHORTEST} characters."
        return Refusal(
            "password_too_short",
            f"{field}: {message}",
            faults=[Fault(field, "too_short", message)],
        )
    if len(password) > LONGEST:
        message = f"Send at most {LONGEST} characters."
    elif not _is_text(password):
        message = "Send text without U+0000 and lone surrogates."
    elif not (character := forbidden(password)):
        return None
    else:
        message = f"Send a password without this character: {character}."
    code = "too_long" if len(password) > LONGEST else "invalid_characters"
    return Refusal("validation_error", f"{field}: {message}", faults=[Fault(field, code, message)])


def invalid_credentials(field: str | None = None) -> Refusal:
    """Return the one refusal of every wrong sign-in."""
    if field is None:
        return Refusal("invalid_credentials", "Incorrect email or password.")
    message = "The password is wrong."
    return Refusal(
        "invalid_credentials", f"{field}: {message}", faults=[Fault(field, "wrong", message)]
    )


def _folded(email: str) -> str:
    """Return the form in which the tries of an email are counted; too long ones share one."""
    return fold_email(email) if len(email) <= 2 * LONGEST_EMAIL else ""


def _is_text(password: str) -> bool:
    if "\0" in password:
        return False
    try:
        password.encode()
    except UnicodeEncodeError:
        return False
    return True

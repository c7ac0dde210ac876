"""The people who own records. Passwords arrive here hashed (gateway.passwords)."""

import unicodedata

from gateway.errors import Fault, Refusal
from outbox.database import Row, Tx


def fold_email(email: str) -> str:
    """The form under which an address is unique: composed, trimmed, case folded."""
    return unicodedata.normalize("NFC", email).strip().casefold()


async def add(tx: Tx, *, email: str, name: str, password_hash: str) -> str:
    """A new user; returns the id. Raises conflict when the address is taken."""
    row = await tx.one(
        """insert into users (id, email, folded_email, name, password_hash, created_at, updated_at)
           values ($1, $2, $3, $4, $5, $6, $6)
           on conflict (folded_email) do nothing returning id""",
        tx.new_id(), email.strip(), fold_email(email), name, password_hash, tx.now,
    )  # fmt: skip
    if row is None:
        text = "A user with this e-mail address exists already."
        raise Refusal("conflict", text, faults=[Fault("email", "taken", text)])
    return str(row["id"])


async def by_email(tx: Tx, email: str) -> Row | None:
    """The user with this address, disabled ones too."""
    return await tx.one("select * from users where folded_email = $1", fold_email(email))


async def one(tx: Tx, user_id: str) -> Row | None:
    """The user with this id, disabled ones too."""
    return await tx.one("select * from users where id = $1", user_id)


async def exist(tx: Tx) -> bool:
    """Whether there is any user yet."""
    return await tx.one("select 1 as found from users limit 1") is not None


async def set_password(tx: Tx, user_id: str, password_hash: str) -> None:
    """A new password; whoever held a token under the old one must sign in again."""
    await tx.run(
        """update users set password_hash = $2, updated_at = $3, version = version + 1
           where id = $1""",
        user_id, password_hash, tx.now,
    )  # fmt: skip
    await tx.run("delete from tokens where owner_id = $1", user_id)


async def disable(tx: Tx, user_id: str) -> None:
    """Shut a user out; records, webhooks and deliveries stay as they are."""
    await tx.run(
        """update users set disabled_at = coalesce(disabled_at, $2), updated_at = $2,
           version = version + 1 where id = $1""",
        user_id, tx.now,
    )  # fmt: skip
    await tx.run("delete from tokens where owner_id = $1", user_id)

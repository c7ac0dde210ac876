"""The people who own records. Passwords arrive here hashed (gateway.passwords)."""

import unicodedata

from gateway import formats
from gateway.errors import Fault, Refusal
from gateway.passwords import LONGEST
from gateway.resource import Field, Resource
from outbox.database import Row, Tx

LONGEST_EMAIL = 254

# Declared as a resource for its fields' sake: what is sent to get a token.
SIGN_IN = Resource(
    noun="sign-in",
    plural="sign-ins",
    table="users",
    description="What a user signs in with.",
    fields=(
        Field(
            "email", "email", formats.title(LONGEST_EMAIL), "E-mail address of the user.",
            "maria@example.com", required=True,
        ),
        Field(
            "password", "password", formats.title(LONGEST), "The user's password.",
            "correct horse battery", required=True,
        ),
    ),
    events={},
)  # fmt: skip


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
    if len(email) > LONGEST_EMAIL:
        # Nobody's; and composing a long run of marks would take the square of its length.
        return None
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

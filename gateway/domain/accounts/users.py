"""Stores users with hashed passwords (see gateway.domain.accounts.passwords)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from gateway.domain.accounts import account_mails, account_tokens
from gateway.domain.accounts.codes import LONGEST as CODE
from gateway.domain.accounts.passwords import LONGEST, SHORTEST
from gateway.domain.queued_mail import NO_FACTS, Facts
from gateway.records import audit
from gateway.records.audit import Actor, Via
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.records.values import formats, zones
from gateway.records.values.emails import earlier_fold, fold_email
from gateway.texts import CODES, HOME
from outbox.database.claims import Claim
from outbox.database.transaction import Row, Tx

P = ParamSpec("P")
T = TypeVar("T")
LONGEST_EMAIL = 254

SIGN_IN = Form(
    noun="sign-in",
    description="The credentials of a user.",
    fields=(
        Field(
            "email", "email", formats.title(LONGEST_EMAIL), "E-mail address of the user.",
            "maria@example.com", required=True,
        ),
        Field(
            "password", "password", formats.title(LONGEST), "The user's password.",
            "correct horse battery", required=True,
        ),
        Field(
            "code", "code", formats.title(CODE),
            "Code of the app, or a recovery code; only for an account with two-factor "
            "authentication.",
            "123456",
        ),
    ),
)  # fmt: skip

_EMAIL = Field(
    "email", "email", formats.email(), "E-mail address for sign-in; unique.",
    "maria@example.com", required=True,
)  # fmt: skip
_NAME = Field("name", "name", formats.title(), "Full name.", "Maria Silva", required=True)
_ZONE = Field(
    "timezone", "timezone", zones.zone(),
    "Time zone of due dates, lists and reports.", zones.DEFAULT,
    default=zones.DEFAULT, nullable=False,
)  # fmt: skip
_LANGUAGE = Field(
    "language", "language", formats.one_of(*CODES),
    "Language of the console and of mails to you; `null` as the browser asks.", HOME,
)  # fmt: skip
SIGN_UP = Form(
    noun="sign-up",
    description="The data of a new account.",
    fields=(
        _EMAIL,
        Field(
            "password", "password", formats.text(LONGEST, SHORTEST), "Password for sign-in.",
            "correct horse battery", required=True,
        ),
        _NAME,
        _ZONE,
        _LANGUAGE,
    ),
)  # fmt: skip
PROFILE = Form(
    noun="profile",
    description="The changeable data of an account.",
    fields=(_NAME, _ZONE, _LANGUAGE),
)


class CheckedAccount(NamedTuple):
    """An account as it was when its password was checked, which takes long."""

    id: str
    version: int
    two_factor_at: int | None


def as_checked(row: Row) -> CheckedAccount:
    """Return the account of a row whose password is right."""
    return CheckedAccount(row["id"], row["version"], row["two_factor_at"])


async def add(
    tx: Tx,
    *,
    email: str,
    name: str,
    password_hash: str,
    timezone: str = zones.DEFAULT,
    language: str | None = None,
    via: Via = "system",
) -> str:
    """Create a user; return the id. Raises conflict when the address is taken."""
    user = await made(
        tx, email=email, name=name, password_hash=password_hash, timezone=timezone,
        language=language, via=via,
    )  # fmt: skip
    return str(user["id"])


async def made(
    tx: Tx, *, email: str, name: str, password_hash: str, timezone: str,
    language: str | None = None, via: Via = "system",
) -> Row:  # fmt: skip
    """Create a user like `add`; return the row. `via` is for the audit log."""
    row = await tx.one(
        """insert into users (id, email, folded_email, name, password_hash, timezone, created_at,
             updated_at, language)
           values ($1, $2, $3, $4, $5, $6, $7, $7, $8)
           on conflict (folded_email) do nothing returning *""",
        tx.new_id(), email.strip(), fold_email(email), name, password_hash, timezone, tx.now,
        language,
    )  # fmt: skip
    if row is None:
        text = "A user with this e-mail address already exists."
        raise Refusal("conflict", text, faults=[Fault("email", "taken", text)])
    tx.claims.append(Claim("email", row["folded_email"], row["id"], "email"))
    audit.record(tx, Actor(row["id"], via), "created", "account", row["id"])
    return row


async def change(
    tx: Tx, user_id: str, values: Mapping[str, str | None], actor: Actor | None = None
) -> Row:
    """Set the columns of PROFILE in `values`; return the user's row. Raises not_found.

    `actor` does it; None is a command on the server.
    """
    row = await tx.one(
        """update users set name = coalesce($2, name), timezone = coalesce($3, timezone),
             language = case when $5 = 1 then $6 else language end,
             updated_at = $4, version = version + 1
           where id = $1 returning *""",
        user_id, values.get("name"), values.get("timezone"), tx.now,
        int("language" in values), values.get("language"),
    )  # fmt: skip
    if row is None:
        raise Refusal("not_found", "This account does not exist.")
    _note(tx, user_id, actor, values)
    return row


_BY_EMAIL = """
select * from users where folded_email in ($1, $2) order by folded_email = $1 limit 1
"""


async def by_email(tx: Tx, email: str) -> Row | None:
    """Return the user with this address, also a disabled one, or None."""
    if len(email) > LONGEST_EMAIL:
        # No user has a longer address, and folding a very long one takes too long.
        return None
    return await tx.one(_BY_EMAIL, fold_email(email), earlier_fold(email))


async def one(tx: Tx, user_id: str) -> Row | None:
    """Return the user with this id, also a disabled one, or None."""
    return await tx.one("select * from users where id = $1", user_id)


async def zone_of(tx: Tx, user_id: str) -> str:
    """Return the time zone of this user."""
    row = await tx.one("select timezone from users where id = $1", user_id)
    return str(row["timezone"]) if row else zones.DEFAULT


async def lock(tx: Tx, user_id: str) -> None:
    """Lock the user until the transaction ends, so that counts of their rows stay true."""
    # SQLite runs all writes one after the other.
    await tx.one("select id from users where id = $1 /*postgres for no key update */", user_id)


_LOCK_CHECKED = """
select id, version, two_factor_at, disabled_at from users
where id = $1 /*postgres for no key update */
"""


async def lock_checked(tx: Tx, account: CheckedAccount) -> None:
    """Lock the user like `lock`. Raises unauthenticated when it changed since the check.

    A new password and two-factor authentication so end what began before them.
    """
    row = await tx.one(_LOCK_CHECKED, account.id)
    if row is None or row["disabled_at"] is not None or as_checked(row) != account:
        raise Refusal("unauthenticated", "This account changed meanwhile; sign in again.")


async def after_check(
    tx: Tx, account: CheckedAccount, unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args, **kwargs: P.kwargs,
) -> T:  # fmt: skip
    """Run `unit` with the account locked as it was checked. Raises as `lock_checked`."""
    await lock_checked(tx, account)
    return await unit(tx, *args, **kwargs)


async def listed(tx: Tx, after: str, limit: int) -> list[Row]:
    """Return up to `limit` users after the folded address `after`, including disabled ones."""
    return await tx.all(
        "select * from users where folded_email > $1 order by folded_email limit $2", after, limit
    )


async def exist(tx: Tx) -> bool:
    """Return whether any user exists."""
    return await tx.one("select 1 as found from users limit 1") is not None


async def set_email(tx: Tx, user_id: str, email: str, actor: Actor | None = None) -> None:
    """Set the address for sign-in, and delete the tokens of mails to the one before.

    Raises conflict when another account has it. `actor` as in `change`.
    """
    await lock(tx, user_id)
    user, holder = await one(tx, user_id), await by_email(tx, email)
    if holder is not None and holder["id"] != user_id:
        text = "A user with this e-mail address already exists."
        raise Refusal("conflict", text, faults=[Fault("email", "taken", text)])
    folded = fold_email(email)
    await tx.run(
        """update users set email = $2, folded_email = $3, updated_at = $4, version = version + 1
           where id = $1""",
        user_id, email.strip(), folded, tx.now,
    )  # fmt: skip
    if user is not None and user["folded_email"] != folded:
        tx.claims.append(Claim("email", folded, user_id, "email"))
        tx.claims.append(Claim("email", user["folded_email"], user_id, holds=False))
    await account_tokens.drop(tx, user_id)
    _note(tx, user_id, actor, ["email"])


async def set_password(
    tx: Tx, user_id: str, password_hash: str, actor: Actor | None = None, facts: Facts = NO_FACTS
) -> None:
    """Set a new password, tell the user by mail, and delete all tokens of the user.

    `actor` as in `change`; `facts` are lines of the mail.
    """
    await tx.run(
        """update users set password_hash = $2, updated_at = $3, version = version + 1
           where id = $1""",
        user_id,
        password_hash,
        tx.now,
    )
    _note(tx, user_id, actor, ["password"])
    await tx.run("delete from tokens where owner_id = $1", user_id)
    await account_tokens.drop(tx, user_id)
    await account_mails.add(tx, user_id, "password_changed", facts)


async def rehash(tx: Tx, user_id: str, before: str, after: str) -> None:
    """Replace the hash of a password by another one of the same password."""
    await tx.run(
        "update users set password_hash = $3 where id = $1 and password_hash = $2",
        user_id,
        before,
        after,
    )


async def disable(tx: Tx, user_id: str) -> None:
    """Disable an account; its data, webhooks and deliveries are kept."""
    await tx.run(
        """update users set disabled_at = coalesce(disabled_at, $2), updated_at = $2,
           version = version + 1 where id = $1""",
        user_id,
        tx.now,
    )
    _note(tx, user_id, None, ["disabled"])
    await tx.run("delete from tokens where owner_id = $1", user_id)


async def enable(tx: Tx, user_id: str) -> None:
    """Enable a disabled account; its API keys that are not revoked work again."""
    await tx.run(
        """update users set disabled_at = null, updated_at = $2, version = version + 1
           where id = $1 and disabled_at is not null""",
        user_id,
        tx.now,
    )
    _note(tx, user_id, None, ["disabled"])


def _note(tx: Tx, user_id: str, actor: Actor | None, fields: Iterable[str]) -> None:
    audit.record(tx, actor or Actor(user_id, "system"), "updated", "account", user_id, fields)

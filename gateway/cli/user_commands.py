"""The `carteiro user` commands. They raise their failures."""

import getpass
import sys
from argparse import Namespace
from collections.abc import Mapping

from gateway.cli import language, tables
from gateway.cli.commands import Say, existing, filled, user_of
from gateway.domain.accounts import account_mails, sessions, two_factor, users
from gateway.domain.accounts.passwords import Passwords, fault_of
from gateway.domain.sales import new_accounts
from gateway.records.values import dates, formats, zones
from gateway.records.values.formats import Wrong
from gateway.server.config import Config
from outbox.database.transaction import Database, Row, Tx
from outbox.errors import CannotStart

USERS_AT_ONCE = 500


async def user_add(config: Config, arguments: Namespace, say: Say) -> None:
    """Create an account and print its id."""
    email = _email(arguments.email)
    if not arguments.name.strip() or len(arguments.name) > 200:
        raise CannotStart("--name must be 1 to 200 characters")
    _must_be_zone(arguments.timezone)
    async with filled(config) as db:
        if (user := await db.read(users.by_email, email)) is not None:
            raise CannotStart(
                f"an account {user['email']} already exists; "
                "`carteiro user set-password` changes its password"
            )
        hashed = await _hash(db, _ask_password(arguments.password_stdin, email))
        user = await db.write(
            new_accounts.create, arguments.language or language.code(), email=email,
            name=arguments.name.strip(), password_hash=hashed, timezone=arguments.timezone,
            language=arguments.language,
        )  # fmt: skip
    say(user["id"])


async def user_list(config: Config, arguments: Namespace, say: Say) -> None:
    """Print every account in the order of email addresses, including disabled ones."""
    accounts: list[tables.Cells] = []
    async with existing(config) as db:
        after = ""
        while rows := await db.read(users.listed, after, USERS_AT_ONCE):
            accounts += [_cells(row) for row in rows]
            after = rows[-1]["folded_email"]
    tables.say_all(accounts, tables.USER, as_json=arguments.json, say=say)


async def user_set(config: Config, arguments: Namespace, say: Say) -> None:
    """Change the given values of an account."""
    values: dict[str, str] = {}
    if arguments.name is not None:
        if not arguments.name.strip() or len(arguments.name) > 200:
            raise CannotStart("--name must be 1 to 200 characters")
        values["name"] = arguments.name.strip()
    if arguments.timezone is not None:
        _must_be_zone(arguments.timezone)
        values["timezone"] = arguments.timezone
    email = None if arguments.new_email is None else _email(arguments.new_email)
    if not values and email is None:
        raise CannotStart("nothing to change; enter --email, --name or --timezone")
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        user = await db.write(_change, user["id"], values, email)
    say(f"{user['email']} is {user['name']}, in {user['timezone']}.")


async def user_set_password(config: Config, arguments: Namespace, say: Say) -> None:
    """Set a new password and end all sessions of the account."""
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        password = _ask_password(arguments.password_stdin, user["email"])
        await db.write(_set_password, user["id"], await _hash(db, password))
    say(f"The password of {user['email']} is changed.")


async def user_end_two_factor(config: Config, arguments: Namespace, say: Say) -> None:
    """Turn off the two-factor authentication of an account that has lost its codes."""
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        was_on = await db.write(two_factor.end, user["id"])
    if was_on:
        say(f"{user['email']} signs in with its password alone; its mailbox is told.")
    else:
        say(f"{user['email']} has no two-factor authentication.")


async def user_disable(config: Config, arguments: Namespace, say: Say) -> None:
    """Disable an account in API and console; its data is kept."""
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        await db.write(_disable, user["id"])
    say(f"{user['email']} is disabled; its data is kept.")


async def user_enable(config: Config, arguments: Namespace, say: Say) -> None:
    """Enable a disabled account."""
    async with existing(config) as db:
        user = await user_of(db, arguments.email)
        await db.write(users.enable, user["id"])
    if user["disabled_at"] is None:
        say(f"{user['email']} is already enabled.")
    else:
        say(f"{user['email']} is enabled; its API keys work again unless they are revoked.")


def _cells(user: Row) -> tables.Cells:
    return {
        "id": user["id"],
        "email": user["email"],
        "name": user["name"],
        "timezone": user["timezone"],
        "state": "active" if user["disabled_at"] is None else "disabled",
        "twoFactor": user["two_factor_at"] is not None,
        "createdAt": dates.show(user["created_at"]),
    }


def _email(text: str) -> str:
    try:
        return str(formats.email().check(text))
    except Wrong as wrong:
        why = f": {wrong.message}" if "U+" in wrong.message else ""
        raise CannotStart(
            f"{text!r} is not an email address such as maria@example.com{why}"
        ) from None


def _must_be_zone(name: str) -> None:
    if name not in zones.names():
        raise CannotStart(f"--timezone {name!r} is not an IANA time zone such as {zones.DEFAULT}")


async def _change(tx: Tx, user_id: str, values: Mapping[str, str], email: str | None) -> Row:
    if email is not None:
        before = await users.one(tx, user_id)
        assert before is not None, "the command has found the account"
        await account_mails.add(
            tx, user_id, "email_changed", {"email": email}, address=before["email"]
        )
        await users.set_email(tx, user_id, email)
    if values:
        await users.change(tx, user_id, values)
    row = await users.one(tx, user_id)
    assert row is not None, "the command has found the account"
    return row


async def _set_password(tx: Tx, user_id: str, password_hash: str) -> None:
    await users.set_password(tx, user_id, password_hash)
    await sessions.end_all(tx, user_id)


async def _disable(tx: Tx, user_id: str) -> None:
    await users.disable(tx, user_id)
    await sessions.end_all(tx, user_id)


async def _hash(db: Database, password: str) -> str:
    passwords = Passwords(clock=db.clock, ids=db.ids, observer=_Unwatched())
    try:
        return await passwords.hash(password)
    finally:
        passwords.close()


class _Unwatched:
    """An observer that ignores all measurements."""

    def password_queue(self, waiting: int) -> None: ...
    def password_hashed(self, seconds: float) -> None: ...


def _ask_password(from_stdin: bool, email: str) -> str:
    """Read the password from the first line of standard input, or twice from the terminal."""
    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif not sys.stdin.isatty():
        raise CannotStart("there is no terminal to enter the password; use --password-stdin")
    else:
        password = getpass.getpass("Password: ")
        if getpass.getpass("Repeat password: ") != password:
            raise CannotStart("the two passwords are different")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise CannotStart("the password must be UTF-8 text") from None
    fault = fault_of(password, email)
    if fault is not None:
        raise CannotStart(fault)
    return password

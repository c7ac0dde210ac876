"""The `carteiro webhooks` commands: the webhooks of an account as a file. They raise failures."""

import os
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import json

from gateway.cli import tables
from gateway.cli.commands import Say, existing, user_of
from gateway.cli.endings import CHANGES, Ended
from gateway.cli.language import spoken
from gateway.domain.webhooks import file_plan, file_text
from gateway.domain.webhooks.file_plan import Created, Plan, Tools, Wanted
from gateway.domain.webhooks.file_text import MOST_BYTES
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.values.formats import Wrong
from gateway.server import startup
from gateway.server.config import Config
from gateway.server.delivery import rules_of
from outbox import private_files
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.sending.request import SECRET_BYTES, new_secret

MOST_VALUE = 65_536
"""Bytes of a file that a value stands in."""
SIGNS = {"create": "+", "change": "~", "delete": "-"}


async def export(config: Config, arguments: Namespace, say: Say) -> None:
    """Print the webhooks of an account as a file, without secrets."""
    async with _opened(config, arguments) as (db, actor, tools):
        heading = spoken()("cli.webhooks.heading", email=arguments.owner)
        text = await db.read(file_plan.export, actor, tools.ring, heading)
    sys.stdout.write(text)
    sys.stdout.flush()


async def plan(config: Config, arguments: Namespace, say: Say) -> None:
    """Print what `apply` would do. Raise Ended with --exit-code when it would do anything."""
    async with _opened(config, arguments) as (db, actor, tools):
        wanted = _wanted(arguments)
        try:
            steps_planned = await db.read(file_plan.plan, actor, wanted, tools)
        except Refusal as refusal:
            raise _told(arguments, refusal) from None
    if arguments.json:
        say(json.encode(_record(steps_planned)).decode())
    else:
        for line in _lines(steps_planned):
            say(tables.inert(line))
        if steps_planned.steps:
            say(spoken()("cli.webhooks.mark", mark=steps_planned.mark))
    if steps_planned.steps and arguments.exit_code:
        raise Ended(CHANGES)


async def apply(config: Config, arguments: Namespace, say: Say) -> None:
    """Make the webhooks of an account like a file: all of it or nothing."""
    secrets_file = None if arguments.secrets is None else Path(arguments.secrets)
    async with _opened(config, arguments) as (db, actor, tools):
        wanted = _wanted(arguments)
        secrets = [new_secret(db.ids.token(SECRET_BYTES)) for _ in wanted.entries]
        if secrets_file is not None:
            _make(secrets_file)
        try:
            applied = await db.write(file_plan.apply, actor, wanted, tools, secrets, arguments.plan)
        except Refusal as refusal:
            _unmake(secrets_file)
            raise _told(arguments, refusal) from None
        except BaseException:
            _unmake(secrets_file)
            raise
        try:
            # Before the rest, which takes its time or fails: nobody else has these secrets.
            failed = None if secrets_file is None else _keep(applied.created, secrets_file)
            for line in _lines(applied.plan):
                say(tables.inert(line))
            _tell(applied.created, None if failed else secrets_file, say)
        finally:
            await file_plan.finish(db, actor, applied)
    if failed is not None:
        raise CannotStart(f"cannot write {secrets_file}: {failed.strerror}")


@asynccontextmanager
async def _opened(
    config: Config, arguments: Namespace
) -> AsyncIterator[tuple[Database, Actor, Tools]]:
    async with existing(config) as db:
        user = await user_of(db, arguments.owner)
        ring = await startup.open_keys(config, db, Ids())
        tools = Tools(rules_of(config.egress), ring, config.limits.webhooks_per_owner)
        yield db, Actor(user["id"], "system", zone=user["timezone"]), tools


def _wanted(arguments: Namespace) -> Wanted:
    """Read the file of the command. Raise CannotStart."""
    path = Path(arguments.file)
    with path.open("rb") as source:
        content = source.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise CannotStart(f"{path} is larger than {MOST_BYTES // 1024} KiB")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise CannotStart(f"{path} is not UTF-8") from None

    def look_up(place: str, name: str) -> str:
        return _variable(name) if place == "env" else _content(path.parent / name)

    try:
        return Wanted(text, file_text.read(text, look_up), arguments.prune)
    except Refusal as refusal:
        raise _told(arguments, refusal) from None


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise Wrong("file_reference", f"The environment has no variable {name[:80]}.")
    return value


def _content(path: Path) -> str:
    try:
        with path.open("rb") as source:
            content = source.read(MOST_VALUE + 1)
        if len(content) > MOST_VALUE:
            raise Wrong("file_reference", f"{path} is larger than {MOST_VALUE // 1024} KiB.")
        return content.decode().removesuffix("\n")
    except OSError as error:
        raise Wrong("file_reference", f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise Wrong("file_reference", f"{path} is not UTF-8.") from None


def _told(arguments: Namespace, refusal: Refusal) -> CannotStart:
    """Print every fault on standard error; return the failure of the command."""
    if not refusal.faults:
        return CannotStart(refusal.message)
    for fault in refusal.faults:
        line = tables.inert(f"{arguments.file}: {fault.field}: {fault.message}")
        sys.stderr.write(f"carteiro: {line}\n")
    return CannotStart(spoken()("cli.webhooks.faulty", count=len(refusal.faults)))


def _lines(plan: Plan) -> Iterator[str]:
    t = spoken()
    for step in plan.steps:
        yield f"{SIGNS[step.act]} {t(f'cli.webhooks.{step.act}')} {step.title}"
        for change in step.changes:
            if change.before == change.after:
                yield f"    {change.setting}: {t('cli.webhooks.values')}"
            elif step.act == "create":
                yield f"    {change.setting}: {change.after}"
            else:
                yield f"    {change.setting}: {change.before or '-'} → {change.after or '-'}"
    counts = {act: len([one for one in plan.steps if one.act == act]) for act in SIGNS}
    yield t("cli.webhooks.sum", same=plan.same, **counts)
    if plan.left:
        yield t("cli.webhooks.left", count=plan.left)


def _record(plan: Plan) -> Mapping[str, Any]:
    return {
        "plan": plan.mark, "same": plan.same, "left": plan.left,
        "steps": [
            {
                "act": step.act, "webhook": step.title,
                "id": step.webhook.id if step.webhook else None,
                "changes": [
                    {"setting": one.setting, "from": one.before, "to": one.after}
                    for one in step.changes
                ],
            }
            for step in plan.steps
        ],
    }  # fmt: skip


def _keep(created: Sequence[Created], secrets_file: Path) -> OSError | None:
    """Write the new secrets to their file, or remove it when there are none.

    Return the error that prevents it, such as that of a full disk; then there is no file.
    """
    rows = _secrets(created)
    if not rows:
        _unmake(secrets_file)
        return None
    try:
        with secrets_file.open("wb") as handle:
            handle.write(rows)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        _unmake(secrets_file)
        return error
    return None


def _tell(created: Sequence[Created], secrets_file: Path | None, say: Say) -> None:
    """Print the new webhooks, with their secrets or where these are."""
    t = spoken()
    for webhook in created:
        shown = webhook.secret if secrets_file is None and webhook.secret else ""
        say(" ".join(filter(None, (t("cli.webhooks.created"), webhook.name, webhook.id, shown))))
    if any(webhook.secret is not None for webhook in created):
        if secrets_file is None:
            say(t("cli.webhooks.once"))
        else:
            say(t("cli.webhooks.secrets", file=str(secrets_file)))


def _secrets(created: Sequence[Created]) -> bytes:
    """Return a line of JSON for each new webhook that got a new secret."""
    rows = [
        {"name": one.name, "id": one.id, "url": one.url, "secret": one.secret}
        for one in created
        if one.secret is not None
    ]
    return b"".join(json.encode(row) + b"\n" for row in rows)


def _make(path: Path) -> None:
    """Create the file of the secrets. Raise CannotStart when it exists."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.FILE))
    except FileExistsError:
        raise CannotStart(f"{path} exists; name a file that does not") from None


def _unmake(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError):
            path.unlink()

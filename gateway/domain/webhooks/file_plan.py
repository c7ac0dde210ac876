"""Compares a file of webhooks with those of an account, and makes the account like the file.

A plan is made in one transaction, and applied in one: all of it or nothing. What takes many
transactions afterwards, as the end of what waits at a deleted webhook, has begun in it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gateway.domain.webhooks import file_text, settings, webhooks
from gateway.domain.webhooks.file_text import Entry
from gateway.domain.webhooks.settings import EMPTY, SETTINGS, Stored, Typed
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from outbox.database.transaction import Database, Tx
from outbox.queue.order import ordering
from outbox.queue.state import lanes
from outbox.queue.upkeep import parking
from outbox.sending.addresses import Rules
from outbox.webhooks import Draft, Webhook
from outbox.webhooks.operational import is_operational
from outbox.webhooks.secrets import KeyRing

STALE = "The webhooks or the file have changed since this plan was made; make a new plan."
MARK = 16
"""Digits of a plan's mark."""

Act = Literal["create", "change", "delete"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a file asks for: its webhooks; with `prune`, no others. `text` is the file."""

    text: str
    entries: Sequence[Entry]
    prune: bool


@dataclass(frozen=True, slots=True)
class Tools:
    """What judges and seals settings. `most`: webhooks of an owner, 0 for no limit."""

    rules: Rules
    ring: KeyRing
    most: int


@dataclass(frozen=True, slots=True)
class Change:
    """A setting before and after, as they are typed; secret values are not in it."""

    setting: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to one webhook."""

    act: Act
    title: str
    webhook: Webhook | None
    draft: Draft | None
    changes: Sequence[Change] = ()
    secret: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All steps. `same` webhooks are like the file, `left` are not in it and stay.

    `mark` names the file and what it was compared with.
    """

    steps: Sequence[Step]
    same: int
    left: int
    mark: str


@dataclass(frozen=True, slots=True)
class Created:
    """A new webhook; `secret` is the one that was made for it, None for one of the owner's."""

    id: str
    name: str
    url: str
    secret: str | None


@dataclass(frozen=True, slots=True)
class Applied:
    """A plan that was applied, what it created, and the webhooks whose order is left to turn."""

    plan: Plan
    created: Sequence[Created]
    turning: Sequence[str]


async def export(tx: Tx, actor: Actor, ring: KeyRing, heading: str = "") -> str:
    """Return the file of all webhooks of the actor, the oldest first. Raises forbidden."""
    known = await webhooks.listed(tx, actor)
    return file_text.written(
        [(one.id, settings.typed_of(webhooks.stored(one, ring))) for one in reversed(known)],
        heading,
    )


async def plan(tx: Tx, actor: Actor, wanted: Wanted, tools: Tools) -> Plan:
    """Compare a file with the webhooks of the actor. Raises validation_error with every fault."""
    known = await webhooks.listed(tx, actor)
    by_id = {one.id: one for one in known}
    by_name = {one.name: one for one in known if one.name is not None}
    steps, faults, met = list[Step](), list[Fault](), set[str]()
    for entry in wanted.entries:
        webhook = by_id.get(entry.id) if entry.id else by_name.get(entry.name)
        if entry.id and webhook is None:
            message = "This account has no such webhook; leave the id out to create it."
            faults.append(Fault(entry.place.at("id"), "file_unknown", message))
            continue
        if webhook is not None and webhook.id in met:
            message = "Another webhook of the file is the same one, by its id or its name."
            faults.append(Fault(entry.place.at(), "file_twice", message))
            continue
        if webhook is not None:
            met.add(webhook.id)
        try:
            step = _step(entry, webhook, tools)
        except Refusal as refusal:
            faults += [
                replace(fault, field=entry.place.at(fault.field)) for fault in refusal.faults
            ]
            continue
        steps += [step] if step is not None else []
    if faults:
        raise Refusal("validation_error", "Nothing was changed.", faults=faults)
    acted = len([step for step in steps if step.webhook is not None])
    others = [one for one in reversed(known) if one.id not in met]
    if wanted.prune:
        steps += [Step("delete", _title(one), one, None) for one in others]
    left = 0 if wanted.prune else len(others)
    return Plan(steps, len(met) - acted, left, _mark(wanted, known))


async def apply(
    tx: Tx, actor: Actor, wanted: Wanted, tools: Tools, secrets: Sequence[str],
    mark: str | None = None,
) -> Applied:  # fmt: skip
    """Make the webhooks of the actor like the file, all or nothing; return what was done.

    `secrets` are one for each webhook of the file, for those that are created without one. Raises
    validation_error with every fault, and conflict when this is not the plan with the `mark`.
    `finish` is to follow, when the new secrets have been handed over.
    """
    actor.must("write")
    # Lanes are locked before webhooks; with them, no result and no other change comes between.
    await lanes.lock(tx, sorted(one.id for one in await webhooks.listed(tx, actor)))
    agreed = await plan(tx, actor, wanted, tools)
    if mark is not None and agreed.mark != mark:
        raise Refusal("conflict", STALE)
    created, turning, spare = list[Created](), list[str](), iter(secrets)
    leaving = len([step for step in agreed.steps if step.act == "delete"])
    most = tools.most and tools.most + leaving
    for step in agreed.steps:
        webhook, draft = step.webhook, step.draft
        try:
            if draft is None:
                assert webhook is not None
                await parking.stop(tx, webhook.id)
            elif webhook is not None:
                if await webhooks.change_in(
                    tx, actor, webhook.id, webhook.version, draft, tools.ring
                ):
                    turning.append(webhook.id)
            else:
                secret = step.secret or next(spare)
                webhook_id = await webhooks.create(
                    tx, actor, draft, secret=secret, ring=tools.ring, most=most
                )
                shown = None if step.secret else secret
                created.append(Created(webhook_id, draft.name or "", draft.url, shown))
        except Refusal as refusal:
            raise _of(step, refusal) from None
    return Applied(agreed, created, turning)


async def finish(db: Database, actor: Actor, applied: Applied) -> None:
    """Turn the order of what was applied, and delete the webhooks that the plan has stopped."""
    for webhook_id in applied.turning:
        await ordering.finish(db, webhook_id, actor.owner_id)
    for step in applied.plan.steps:
        if step.act == "delete" and step.webhook is not None:
            await _delete(db, actor, step.webhook.id)


async def _delete(db: Database, actor: Actor, webhook_id: str) -> None:
    """Delete a webhook that the plan has stopped, unless somebody else has deleted it."""
    try:
        await webhooks.delete(db, actor, webhook_id)
    except Refusal as refusal:
        if refusal.code != "not_found":
            raise


def _of(step: Step, refusal: Refusal) -> Refusal:
    """Return a refusal that names the webhook of the step."""
    faults = [replace(one, field=f"{step.title}, {one.field}") for one in refusal.faults]
    return Refusal(refusal.code, refusal.message, faults=faults, facts=refusal.facts)


def _step(entry: Entry, webhook: Webhook | None, tools: Tools) -> Step | None:
    """Return what makes a webhook like an entry; None when it is. Raises validation_error."""
    stored = None if webhook is None else webhooks.stored(webhook, tools.ring)
    events = entry.typed["events"]
    assert isinstance(events, tuple)
    draft = settings.judge(
        entry.typed,
        rules=tools.rules,
        stored=stored,
        listens=is_operational(events) if webhook is None else webhook.operational,
    )
    if stored is None or webhook is None:
        return Step("create", entry.name, None, draft, _changes(None, draft), entry.secret)
    changes = _changes(stored, draft)
    return Step("change", _title(webhook), webhook, draft, changes) if changes else None


def _changes(stored: Stored | None, draft: Draft) -> list[Change]:
    """Return what differs from a stored webhook, or from an empty form."""
    differ = None if stored is None else settings.changed(stored, draft)
    changes = []
    for setting in SETTINGS:
        before = EMPTY[setting.kind] if stored is None else setting.shown(setting.stored(stored))
        after = setting.shown(getattr(draft, setting.column))
        if (before != after) if differ is None else (setting.name in differ):
            changes.append(Change(setting.name, _line(before), _line(after)))
    return changes


def _line(typed: Typed) -> str:
    if isinstance(typed, bool):
        return "true" if typed else "false"
    return ", ".join(typed if isinstance(typed, tuple) else typed.splitlines())


def _title(webhook: Webhook) -> str:
    return webhook.name or webhook.id


def _mark(wanted: Wanted, known: Sequence[Webhook]) -> str:
    digest = hashlib.sha256(f"{wanted.prune}\0{wanted.text}".encode())
    for one in sorted(known, key=lambda one: one.id):
        digest.update(f"\0{one.id} {one.version}".encode())
    return digest.hexdigest()[:MARK]

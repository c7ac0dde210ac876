"""Stores the pipeline of an owner: a setting with the ordered stages of deals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway import texts
from gateway.records import actions, audit
from gateway.records.audit import Actor
from gateway.records.errors import Fault
from gateway.records.record import Draft, refusal
from gateway.records.resource import Field, Form
from gateway.records.values import formats
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Row, Tx

STAGES = ("lead", "qualified", "proposal", "negotiation", "closing")

PIPELINE = Form(
    noun="pipeline",
    description="The stages of the sales funnel, in the order of boards and reports.",
    fields=(
        Field(
            "stages", "stages", formats.tags(), "The stages in order.", list(STAGES),
            default=dumps(STAGES),
        ),
        Field(
            "strict", "strict", formats.boolean(),
            "Whether deals can use only these stages.", False, default=False,
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The stages of an owner, and whether deals are limited to them."""

    stages: Sequence[str]
    strict: bool
    version: int = 0


_SELECT = "select stages, strict, version from pipelines where owner_id = $1"
_INSERT = """
insert into pipelines (owner_id, stages, strict, version) values ($1, $2, false, 0)
on conflict (owner_id) do nothing
"""
_UPDATE = """
update pipelines set stages = $2, strict = $3, version = version + 1 where owner_id = $1
returning stages, strict, version
"""


async def begin(tx: Tx, owner_id: str, language: str) -> None:
    """Give a new account stages in its language; without a row it has the English ones."""
    stages = texts.of(language)("pipeline.first_stages").split(", ")
    if stages != [*STAGES]:
        await tx.run(_INSERT, owner_id, dumps(stages))


async def of(tx: Tx, actor: Actor) -> Pipeline:
    """Return the owner's pipeline, or the default one."""
    return _pipeline(await tx.one(_SELECT, actor.owner_id))


async def read(tx: Tx, actor: Actor) -> Pipeline:
    """Return the owner's pipeline for a door. Raises forbidden."""
    actor.must("read")
    return await of(tx, actor)


async def change(
    tx: Tx, actor: Actor, draft: Draft, expected: frozenset[str] | None = None
) -> Pipeline:
    """Change the pipeline; null sets the default. Deals keep their stages.

    `expected` are versions as text. Raises forbidden, the faults of the draft,
    precondition_failed.
    """
    actor.must("write")
    draft.must_hold()
    # The row is locked, so that concurrent changes run one after the other.
    await tx.run(_INSERT, actor.owner_id, dumps(STAGES))
    row: Any = await tx.one(f"{_SELECT} /*postgres for update*/", actor.owner_id)
    before = _pipeline(row)
    etag = str(before.version)
    if expected is not None and actions.ANY not in expected and etag not in expected:
        raise actions.changed_meanwhile(etag)
    stages = draft.values.get("stages", row["stages"])
    strict = draft.values.get("strict", before.strict)
    if (stages, strict) == (row["stages"], before.strict):
        return before
    if strict and not json.decode(stages):
        field = "stages" if "stages" in draft.sent else "strict"
        message = "A strict pipeline needs at least one stage."
        raise refusal([Fault(field, "no_stages", message)])
    changed = {"stages": stages != row["stages"], "strict": strict != before.strict}
    fields = [name for name, differs in changed.items() if differs]
    audit.record(tx, actor, "updated", "pipeline", None, fields)
    return _pipeline(await tx.one(_UPDATE, actor.owner_id, stages, strict))


def _pipeline(row: Row | None) -> Pipeline:
    if row is None:
        return Pipeline(STAGES, False)
    return Pipeline(json.decode(row["stages"]), bool(row["strict"]), row["version"])

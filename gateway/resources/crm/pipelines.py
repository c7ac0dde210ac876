"""The pipeline of an owner: the stages of their deals in order. A setting, one for each owner."""

from typing import Any

from msgspec import Struct, json

from gateway import actions, formats, nested
from gateway.access import Caller
from gateway.errors import Fault
from gateway.resource import Field, Resource
from gateway.strictjson import dumps
from gateway.validation import Draft, refusal
from gateway.views import View
from outbox.database.transaction import Row, Tx

STAGES = ("lead", "qualified", "proposal", "negotiation", "closing")

# Declared as a resource for its fields' sake; it has no id, and stays out of the catalogue.
PIPELINE = Resource(
    noun="pipeline",
    plural="pipelines",
    table="pipelines",
    description="The stages of the sales funnel, in the order of boards and reports.",
    fields=(
        Field(
            "stages", "stages", nested.tags(), "The stages in order.", list(STAGES),
            default=dumps(STAGES),
        ),
        Field(
            "strict", "strict", formats.boolean(),
            "Whether deals may be put into these stages only.", False, default=False,
        ),
    ),
    events={},
    deletable=False,
)  # fmt: skip


class Pipeline(Struct, frozen=True):
    """The stages of an owner, and whether their deals may be in no others."""

    stages: list[str]
    strict: bool


_SELECT = "select stages, strict, version from pipelines where owner_id = $1"
_INSERT = """
insert into pipelines (owner_id, stages, strict, version) values ($1, $2, false, 0)
on conflict (owner_id) do nothing
"""
_UPDATE = """
update pipelines set stages = $2, strict = $3, version = version + 1 where owner_id = $1
returning stages, strict, version
"""


async def of(tx: Tx, caller: Caller) -> Pipeline:
    """The caller's pipeline; the default one until they have set their own."""
    return _shown(await tx.one(_SELECT, caller.user_id))


async def read(tx: Tx, caller: Caller) -> View:
    """`of`, for the owner to see. Raises forbidden."""
    caller.must("read")
    return _view(caller, await tx.one(_SELECT, caller.user_id))


async def change(tx: Tx, caller: Caller, draft: Draft, if_match: str | None = None) -> View:
    """Set what was sent; null sets the default. Deals stay in the stages where they are.

    Raises forbidden, what is wrong with the draft, precondition_failed.
    """
    caller.must("write")
    draft.must_hold()
    # A row to lock, so that changes at the same time follow one another.
    await tx.run(_INSERT, caller.user_id, dumps(STAGES))
    row: Any = await tx.one(f"{_SELECT} /*postgres for update*/", caller.user_id)
    before = _view(caller, row)
    actions.must_match(before, if_match)
    stages = draft.values.get("stages", row["stages"])
    strict = draft.values.get("strict", bool(row["strict"]))
    if (stages, strict) == (row["stages"], bool(row["strict"])):
        return before
    if strict and not json.decode(stages):
        field = "stages" if "stages" in draft.sent else "strict"
        message = "A strict pipeline has at least one stage; send stages, or strict false."
        raise refusal([Fault(field, "no_stages", message)])
    return _view(caller, await tx.one(_UPDATE, caller.user_id, stages, strict))


def _view(caller: Caller, row: Row | None) -> View:
    version = 0 if row is None else row["version"]
    return View(caller.user_id, _shown(row), f'"{version}"')


def _shown(row: Row | None) -> Pipeline:
    if row is None:
        return Pipeline([*STAGES], False)
    return Pipeline(json.decode(row["stages"]), bool(row["strict"]))

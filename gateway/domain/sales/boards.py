"""Reads the open deals of an owner as a board: a column for each stage, its newest deals first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.sales import deals, pipelines
from gateway.domain.sales.pipelines import Pipeline
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.places import Place
from gateway.records.record import Record
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Row, Tx

CARDS = 50
"""Cards of a column that are read at a time."""
COLUMNS = 20
"""Columns that are read at a time; an owner can have 550."""


@dataclass(frozen=True, slots=True)
class Card:
    """An open deal. The value is in centavos, times are microseconds UTC."""

    id: str
    version: int
    created_at: int
    title: str
    value: int
    stage: str
    """Empty for a deal without one."""
    expected_close_at: int | None
    expected_close_day: bool
    """Whether that is a date without a time."""
    company: str | None
    """The name of its company."""


@dataclass(frozen=True, slots=True)
class Column:
    """The deals of a stage: how many are open, their sum in centavos, and the newest of them."""

    stage: str
    count: int
    value: int
    cards: Sequence[Card] = ()
    onward: Place | None = None
    """The position of further cards."""


@dataclass(frozen=True, slots=True)
class Board:
    """The columns from place `first` in the order of the pipeline, and figures of all deals."""

    stages: Sequence[str]
    """The stages of all columns; the last is that of deals without one, an empty text."""
    strict: bool
    first: int
    columns: Sequence[Column]
    ended: Mapping[str, tuple[int, int]]
    """The number of won and lost deals, and their sums."""


_TOTALS = "select stage, status, n, value from deal_totals where owner_id = $1"
_FIELDS = (
    "d.id, d.version, d.created_at, d.title, d.value, d.stage, d.expected_close_at,"
    " d.expected_close_day"
)
_COMPANY = "left join companies as c on c.id = d.company_id and c.owner_id = d.owner_id"
_NEWEST = "order by created_at desc, id desc"
_OPEN = "owner_id = $1 and coalesce(stage, '') = {} and status = 'open'"
_OF_STAGE = _OPEN.format("s.value")
# One read of the index for each stage.
CARDS_OF_STAGES = f"""
select {_FIELDS}, c.name as company
from /*sqlite json_each($2) as s join deals as d on d.id in (
  select id from deals where {_OF_STAGE} {_NEWEST} limit $3)*/
/*postgres json_array_elements_text(cast($2 as json)) as s (value) cross join lateral (
  select * from deals where {_OF_STAGE} {_NEWEST} limit $3) as d*/
{_COMPANY}
order by d.created_at desc, d.id desc
"""
_MORE = f"""
select {_FIELDS}, c.name as company from (
  select * from deals where {_OPEN.format("$2")} and (created_at, id) < ($3, $4)
  {_NEWEST} limit $5) as d
{_COMPANY}
order by d.created_at desc, d.id desc
"""

Figures = dict[str, tuple[int, int]]
NOTHING = (0, 0)


async def board(tx: Tx, actor: Actor, first: int = 0) -> Board:
    """Return up to COLUMNS columns from place `first`, with their newest CARDS. Raises forbidden.

    Three statements; what they read depends neither on the number of deals nor on that of stages.
    """
    by_stage, ended = await figures(tx, actor)
    pipeline = await pipelines.of(tx, actor)
    stages = stages_of(pipeline, by_stage)
    first = first if 0 <= first < len(stages) else 0
    shown = stages[first : first + COLUMNS]
    cards: dict[str, list[Card]] = {stage: [] for stage in shown}
    for row in await tx.all(CARDS_OF_STAGES, actor.owner_id, dumps(shown), CARDS + 1):
        cards[row["stage"] or ""].append(_card(row))
    columns = [Column(stage, *by_stage.get(stage, NOTHING), *_cut(cards[stage])) for stage in shown]
    return Board(stages, pipeline.strict, first, columns, ended)


async def more(tx: Tx, actor: Actor, stage: str, after: Place) -> Column:
    """Return the next CARDS of a column, without its figures. Raises forbidden."""
    actor.must("read")
    if "\0" in stage:
        # PostgreSQL stores no such text, and takes none as a parameter.
        return Column(stage, 0, 0)
    rows = await tx.all(_MORE, actor.owner_id, stage, after.at, after.record_id, CARDS + 1)
    return Column(stage, 0, 0, *_cut([_card(row) for row in rows]))


def stages_of(pipeline: Pipeline, by_stage: Figures) -> list[str]:
    """Return the stages of the pipeline, then those beside it by name, then an empty text."""
    named = dict.fromkeys(stage for stage in (*pipeline.stages, *by_stage) if stage)
    return [*deals.in_order(named, pipeline), ""]


async def card(tx: Tx, actor: Actor, deal: Record) -> Card:
    """Return the card of a deal of the actor."""
    company = None
    if deal["company_id"] is not None:
        page = await actions.some(tx, actor, COMPANIES, [deal["company_id"]])
        company = page.records[0]["name"] if page.records else None
    return _card({**deal.stored, "company": company})


async def figures(tx: Tx, actor: Actor) -> tuple[Figures, Figures]:
    """Return number and sum of the open deals by stage, and those of the won and lost ones."""
    actor.must("read")
    # Added in Python, because the sum of very many values exceeds the engines' integers.
    by_stage: Figures = {}
    ended: Figures = {"won": NOTHING, "lost": NOTHING}
    for row in await tx.all(_TOTALS, actor.owner_id):
        figures, key = (
            (by_stage, row["stage"]) if row["status"] == "open" else (ended, row["status"])
        )
        count, value = figures.get(key, NOTHING)
        figures[key] = (count + row["n"], value + row["value"])
    return by_stage, ended


def _card(row: Row | Mapping[str, Any]) -> Card:
    return Card(
        row["id"], row["version"], row["created_at"], row["title"], row["value"],
        row["stage"] or "", row["expected_close_at"],
        bool(row["expected_close_day"]), row["company"],
    )  # fmt: skip


def _cut(cards: list[Card]) -> tuple[Sequence[Card], Place | None]:
    if len(cards) <= CARDS:
        return cards, None
    last = cards[CARDS - 1]
    return cards[:CARDS], Place(last.created_at, last.id)

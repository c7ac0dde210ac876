"""Reads the open deals of an owner as a board: a column for each stage, its newest deals first.

A deal without a stage stands in the first column. The deals of orders are no sales that somebody
works on: they have a board of their own, unless the pipeline names their stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.sales import deals, pipelines
from gateway.domain.sales.deals import SHOP_STAGE
from gateway.domain.sales.pipelines import Pipeline
from gateway.records import actions
from gateway.records.audit import Actor
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
    """The column in which it stands; empty where no stage is named."""
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
    unstaged: bool = False
    """Whether deals without a stage stand in it, too."""


@dataclass(frozen=True, slots=True)
class Board:
    """The columns from place `first` in the order of the pipeline, and figures of all deals."""

    stages: Sequence[str]
    """The stages of all columns."""
    targets: Sequence[str]
    """The stages to which its deals can move."""
    first: int
    columns: Sequence[Column]
    ended: Mapping[str, tuple[int, int]]
    """The number of won and lost deals, and their sums."""
    shop: bool
    """Whether it is the board of the deals of orders."""
    orders: int | None
    """The number of open deals of orders; None without a board of their own."""


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


async def board(tx: Tx, actor: Actor, first: int = 0, shop: bool = False) -> Board:
    """Return up to COLUMNS columns from place `first`, with their newest CARDS. Raises forbidden.

    `shop` means the board of the deals of orders. Three statements; what they read depends neither
    on the number of deals nor on that of stages.
    """
    actor.must("read")
    pipeline = await pipelines.of(tx, actor)
    apart = is_apart(pipeline)
    shop = shop and apart
    by_stage, ended = await figures(tx, actor, shop if apart else None)
    sales = stages_of(pipeline, by_stage)
    stages = [SHOP_STAGE] if shop else sales
    first = first if 0 <= first < len(stages) else 0
    shown = stages[first : first + COLUMNS]
    loose = [] if shop or first or not shown[0] else [""]
    cards: dict[str, list[Card]] = {stage: [] for stage in shown}
    read = dumps([*shown, *loose])
    for row in await tx.all(CARDS_OF_STAGES, actor.owner_id, read, CARDS + 1):
        card = _card(row, sales[0])
        cards[card.stage].append(card)
    columns = [
        Column(
            stage,
            *figures_in(by_stage, stage, sales[0]),
            *_cut(cards[stage]),
            unstaged=bool(loose) and stage == shown[0],
        )
        for stage in shown
    ]
    orders = by_stage.get(SHOP_STAGE, NOTHING)[0] if apart else None
    targets = [SHOP_STAGE, *sales] if shop else sales
    return Board(
        stages=stages,
        targets=targets,
        first=first,
        columns=columns,
        ended=ended,
        shop=shop,
        orders=orders,
    )


async def more(tx: Tx, actor: Actor, stage: str, after: Place, unstaged: bool = False) -> Column:
    """Return the next CARDS of a column, without its figures. Raises forbidden."""
    actor.must("read")
    if "\0" in stage:
        # PostgreSQL stores no such text, and takes none as a parameter.
        return Column(stage, 0, 0)
    cards: list[Card] = []
    for column in (stage, "") if unstaged and stage else (stage,):
        rows = await tx.all(_MORE, actor.owner_id, column, after.at, after.record_id, CARDS + 1)
        cards += [_card(row, stage) for row in rows]
    cards.sort(key=lambda card: (card.created_at, card.id), reverse=True)
    return Column(stage, 0, 0, *_cut(cards), unstaged=unstaged)


def is_apart(pipeline: Pipeline) -> bool:
    """Return whether the deals of orders have a board of their own."""
    return SHOP_STAGE not in pipeline.stages


def stages_of(pipeline: Pipeline, by_stage: Figures) -> list[str]:
    """Return the stages of the pipeline, then those beside it by name; an empty text without any.

    The stage of the deals of orders counts only if the pipeline names it.
    """
    named = dict.fromkeys(stage for stage in (*pipeline.stages, *by_stage) if stage)
    if is_apart(pipeline):
        named.pop(SHOP_STAGE, None)
    return deals.in_order(named, pipeline) or [""]


def figures_in(by_stage: Figures, stage: str, first: str) -> tuple[int, int]:
    """Return number and sum of the deals of a column; `first` has those without a stage, too."""
    count, value = by_stage.get(stage, NOTHING)
    others, worth = by_stage.get("", NOTHING) if stage and stage == first else NOTHING
    return count + others, value + worth


async def card(tx: Tx, actor: Actor, deal: Record, first: str) -> Card:
    """Return the card of a deal of the actor; without a stage it stands in the `first` column."""
    company = None
    if deal["company_id"] is not None:
        page = await actions.some(tx, actor, COMPANIES, [deal["company_id"]])
        company = page.records[0]["name"] if page.records else None
    return _card({**deal.stored, "company": company}, first)


async def figures(tx: Tx, actor: Actor, shop: bool | None = None) -> tuple[Figures, Figures]:
    """Return number and sum of the open deals by stage, and those of the won and lost ones.

    `shop` counts won and lost deals of orders alone, or all others.
    """
    actor.must("read")
    # Added in Python, because the sum of very many values exceeds the engines' integers.
    by_stage: Figures = {}
    ended: Figures = {"won": NOTHING, "lost": NOTHING}
    for row in await tx.all(_TOTALS, actor.owner_id):
        if row["status"] == "open":
            totals, key = by_stage, row["stage"]
        elif shop is None or (row["stage"] == SHOP_STAGE) is shop:
            totals, key = ended, row["status"]
        else:
            continue
        count, value = totals.get(key, NOTHING)
        totals[key] = (count + row["n"], value + row["value"])
    return by_stage, ended


def _card(row: Row | Mapping[str, Any], first: str) -> Card:
    return Card(
        id=row["id"],
        version=row["version"],
        created_at=row["created_at"],
        title=row["title"],
        value=row["value"],
        stage=row["stage"] or first,
        expected_close_at=row["expected_close_at"],
        expected_close_day=bool(row["expected_close_day"]),
        company=row["company"],
    )


def _cut(cards: list[Card]) -> tuple[Sequence[Card], Place | None]:
    if len(cards) <= CARDS:
        return cards, None
    last = cards[CARDS - 1]
    return cards[:CARDS], Place(last.created_at, last.id)

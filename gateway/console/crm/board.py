"""The board of deals: a column for each stage, and the move of a deal to another or to its end."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from aiohttp import web

from gateway.console.crm import calendar_days
from gateway.console.layout import error_pages, pages, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER, Reader
from gateway.domain.sales import boards, deals, pipelines
from gateway.domain.sales.boards import Card, Figures
from gateway.domain.sales.deals import DEALS, SHOP_STAGE
from gateway.domain.sales.pipelines import Pipeline
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.places import Place
from gateway.records.record import Draft, Record, check
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

PATH = "/console/deals/board"
ENDS = ("won", "lost")
_PLACE = re.compile("([0-9]{1,18})-([0-9a-f]{24})", re.ASCII)
TOLD = ("not_allowed", "too_many", "too_long")
"""Codes of faults of a stage that the console has a sentence for."""


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the board from column `first`; with `stage`, further cards of that column alone."""
    query, database = request.query, request.app[DB]
    place = query.get("first", "")
    first = int(place) if re.fullmatch("[0-9]{1,3}", place, re.ASCII) else 0
    cards = _PLACE.fullmatch(query.get("after", ""))
    context: dict[str, Any]
    if cards is not None:
        after = Place(int(cards[1]), cards[2])
        stage = query.get("stage", "").replace("\0", "")
        unstaged = "unstaged" in query
        column = await database.read(boards.more, visitor.actor, stage, after, unstaged)
        context = {"column": column, **_common(request)}
        if "HX-Request" in request.headers:
            return templates.render(request, visitor, "parts/board_cards.html", context)
        return templates.render(request, visitor, "board_column.html", context)
    board = await database.read(boards.board, visitor.actor, first, "shop" in query)
    onward = first + boards.COLUMNS
    context = {
        "board": board,
        "targets": board.targets,
        "steps": boards.COLUMNS,
        "onward": onward if onward < len(board.stages) else None,
        **_common(request, board.orders is not None),
    }
    return templates.render(request, visitor, "board.html", context)


async def move_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask where a deal moves to."""
    deal, around, card = await request.app[DB].read(_one, visitor.actor, pages.id_of(request))
    return _move_page(request, visitor, deal, around, card, "")


async def move(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Move a deal: `act` is move (to the field `stage`), won, lost (with `lostReason`) or open.

    A script of the board gets the card and the figures of the columns in place of a page; both
    tell why a deal could not move, and where it is.
    """
    deal_id, act = pages.id_of(request), form.text("act")
    version = frozenset({form.text("version")})
    refusal: Refusal | None = None
    try:
        await request.app[DB].write(deals.change, visitor.actor, deal_id, _draft(form), version)
    except Refusal as refused:
        if refused.code not in ("precondition_failed", "validation_error"):
            raise
        refusal = refused
    scripted = "HX-Request" in request.headers
    if refusal is None and not scripted:
        done = {"won": "deal_won", "lost": "deal_lost", "open": "deal_open"}.get(act, "deal_moved")
        back = f"/console/deals/{deal_id}" if form.text("back") == "deal" else PATH
        return pages.to(back, done)
    came = form.text("from")
    deal, around, card = await request.app[DB].read(_one, visitor.actor, deal_id, came)
    said = "" if refusal is None else _told(request[READER], refusal, deal, around, card)
    if not scripted:
        return _move_page(request, visitor, deal, around, card, said, status=409)
    first = around.stages[0]
    context = {
        "card": card, "deal": deal, "said": said, "ended": around.ended,
        "figures_of": {
            stage: boards.figures_in(around.by_stage, stage, first) for stage in {came, card.stage}
        },
        **_common(request, boards.is_apart(around.pipeline)),
    }  # fmt: skip
    status = 200 if refusal is None else error_pages.status_of(refusal)
    if refusal is not None and refusal.code == "precondition_failed":
        status = 409
    return templates.render(request, visitor, "parts/board_moved.html", context, status=status)


def _draft(form: Form) -> Draft:
    act = form.text("act")
    values: dict[str, Any]
    if act == "move":
        values = {"stage": form.text("stage") or None}
    elif act == "lost":
        values = {"status": "lost", "lostReason": form.text("lostReason").strip() or None}
    elif act in ("won", "open"):
        values = {"status": act}
    else:
        raise Refusal("not_found", "error.not_found_help")
    return check(DEALS, values, from_json=True)


@dataclass(frozen=True, slots=True)
class Around:
    """The board around a deal: its pipeline, its columns, and the figures of both."""

    pipeline: Pipeline
    stages: Sequence[str]
    by_stage: Figures
    ended: Figures


async def _one(
    tx: Tx, actor: Actor, deal_id: str, came: str | None = None
) -> tuple[Record, Around, Card]:
    """Return a deal with its board; `came` is the column in which its card was."""
    deal = await actions.read(tx, actor, DEALS, deal_id)
    pipeline = await pipelines.of(tx, actor)
    shop = came == SHOP_STAGE if boards.is_apart(pipeline) else None
    by_stage, ended = await boards.figures(tx, actor, shop)
    stages = boards.stages_of(pipeline, by_stage)
    card = await boards.card(tx, actor, deal, stages[0])
    return deal, Around(pipeline, stages, by_stage, ended), card


def _move_page(
    request: web.Request, visitor: SignedIn, deal: Record, around: Around, card: Card, said: str,
    *, status: int = 200,
) -> web.Response:  # fmt: skip
    # The deal of an order has its own stage before those of sales.
    here = [] if card.stage in around.stages else [card.stage]
    context = {
        "deal": deal, "card": card, "said": said, "targets": [*here, *around.stages],
        **_common(request, boards.is_apart(around.pipeline)),
    }  # fmt: skip
    return templates.render(request, visitor, "deal_move.html", context, status=status)


def _told(reader: Reader, refusal: Refusal, deal: Record, around: Around, card: Card) -> str:
    """Return why a deal did not move, as a sentence."""
    texts = reader.texts
    if refusal.code == "precondition_failed":
        stage = _name(reader, boards.is_apart(around.pipeline), card.stage)
        key = "board.changed" if deal["status"] == "open" else f"board.changed_{deal['status']}"
        return texts(key, title=deal["title"], stage=stage)
    told = []
    for fault in refusal.faults:
        key = f"board.fault.{fault.code}"
        allowed = ", ".join(around.pipeline.stages)
        told.append(
            texts(key, stages=allowed) if fault.code in TOLD else wording.said(texts, fault)
        )
    return " ".join(told) or wording.refused(texts, refusal)


def _common(request: web.Request, apart: bool = True) -> Mapping[str, Any]:
    reader = request[READER]

    def day(card: Card) -> str:
        assert card.expected_close_at is not None
        at = calendar_days.date_of(card.expected_close_at, card.expected_close_day, reader)
        return calendar_days.words(at, reader)

    return {"board_path": PATH, "ends": ENDS, "day": day, "name_of": partial(_name, reader, apart)}


def _name(reader: Reader, apart: bool, stage: str) -> str:
    """Return the name of a column; that of the shop has a word if it stands apart from sales."""
    if apart and stage == SHOP_STAGE:
        return reader.texts("board.shop")
    return stage or reader.texts("board.none")

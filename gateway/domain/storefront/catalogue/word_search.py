"""Finds the products with the words of a search by the full-text index of each engine.

What is found is bounded: the newest MOST that match. SQLite's index is read in this order. That of
PostgreSQL has no order, so that frequent words are looked for in the newest products instead.
How well a product fits is computed in SQL, the same on both engines: their own ranks weigh a word
by all products that have it, which costs as much as the word is frequent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import json

from gateway.records.record import Record
from gateway.records.values.folding import fold
from gateway.records.values.words import Term, Terms, category_term, search_terms, words_of
from outbox.database.index_plans import by_index, by_some_index
from outbox.database.transaction import Tx

MOST = 1_000
"""Most products of a search, the newest that match; totals are exact up to here."""
WALKED = 5_000
"""Products that a page looks at when a list is walked."""
SAMPLE = 500
"""The newest products of a store that show whether a search is frequent, on PostgreSQL."""
FREQUENT = 5
"""A search is frequent when one of so many of them matches."""
TERMS = 100
"""Most categories that the index of words is asked for."""
RANK = 2**52
"""What a rank weighs beside a time in microseconds."""


@dataclass(slots=True)
class Source:
    """The listings `s` of a selection: what follows FROM, with its conditions, and parameters."""

    args: list[Any]
    sql: str = ""
    rank: str = ""
    """How well a product `{0}` with the id `{1}` fits a search and how new it is, in SQL.

    The smaller, the better.
    """

    def narrow(self, condition: str, *values: Any) -> None:
        """Add a condition, in which `{0}` and so on stand for the values."""
        places = []
        for value in values:
            self.args.append(value)
            places.append(f"${len(self.args)}")
        self.sql += f" and {condition.format(*places)}"


async def found(tx: Tx, shop: Record, search: str, categories: Sequence[str]) -> Sequence[str]:
    """Return up to MOST + 1 ids of products with the words of a search, the newest first.

    They have one of the categories, folded names, unless these are none or more than TERMS.
    """
    groups = [*search_terms(shop.id, search)]
    if not groups:
        return []
    if 0 < len(categories) <= TERMS:
        groups.append([Term(category_term(shop.id, name)) for name in categories])
    if tx.engine == "sqlite":
        return await ids_of(tx, _FTS5, Source([_fts5(groups), MOST + 1]))
    # GIN has no order and reads all entries of a word, but a frequent word is soon met in the
    # newest products.
    await by_index(tx)
    every = Source([shop.id])
    for group in groups:
        every.narrow(
            f"({' or '.join(f'strpos(t.words, {{{n}}}) > 0' for n in range(len(group)))})",
            *(f" {term.text}{' ' * (not term.prefix)}" for term in group),
        )
    sample = await tx.one(_SAMPLE.format(SAMPLE, every.sql), *every.args)
    assert sample is not None
    if sample["looked"] < SAMPLE:
        ids: list[str] = json.decode(sample["ids"])
        return ids
    new: list[str] = []
    if sample["found"] * FREQUENT >= SAMPLE:
        new = await ids_of(tx, _NEWEST.format(WALKED, every.sql, MOST + 1), every)
        if len(new) > MOST:
            return new
    await by_some_index(tx)
    matching = await ids_of(tx, _GIN, Source([_tsquery(groups), MOST + 1]))
    if len(matching) > MOST:
        matching = [*dict.fromkeys([*new, *matching])][: MOST + 1]
    return matching


async def ids_of(tx: Tx, sql: str, source: Source) -> list[str]:
    """Return the first column of a query, read as one text."""
    row = await tx.one(
        "select /*sqlite json_group_array(record_id)*/"
        f" /*postgres coalesce(json_agg(record_id), '[]')*/ as ids from ({sql}) as found",
        *source.args,
    )
    ids: list[str] = json.decode(row["ids"]) if row else []
    return ids


def _fts5(groups: Terms) -> str:
    return " AND ".join(
        f"({' OR '.join(_quoted(term, chr(34), '*') for term in group)})" for group in groups
    )


def _tsquery(groups: Terms) -> str:
    return " & ".join(
        f"({' | '.join(_quoted(term, chr(39), ':*') for term in group)})" for group in groups
    )


def _quoted(term: Term, quote: str, prefix: str) -> str:
    # Terms consist of letters and digits, so nothing in them needs an escape.
    return f"{quote}{term.text}{quote}{prefix * term.prefix}"


def add_rank(source: Source, shop: Record, search: str) -> None:
    """Set `rank` of a source, with its parameters."""
    texts = (*_texts(search), shop.owner_id, *_skus(search))
    places = [f"${len(source.args) + number}" for number in range(1, len(texts) + 1)]
    source.args += texts
    source.rank = _RANK.format("{0}", "{1}", *places)


def rank(product: Record, search: str) -> int:
    """Return what `Source.rank` computes of a product."""
    name = fold(product["name"])
    words, begins, inside = _texts(search)
    if name == words or product["sku"] in _skus(search):
        place = 0
    elif f"{name} ".startswith(begins):
        place = 1
    else:
        place = 2 if inside in f" {name}" else 3
    created_at: int = product["created_at"]
    return place * RANK - created_at


def _texts(search: str) -> tuple[str, str, str]:
    """Return the words of a search, and as a title begins with them and has them inside."""
    words = " ".join(words_of(search))
    return words, f"{words} ", f" {words}"


def _skus(search: str) -> tuple[str, str, str]:
    """Return the forms in which a search may name a stock keeping unit."""
    return search, search.upper(), search.lower()


_FTS5 = """
select t.record_id from product_index cross join product_terms t indexed by product_terms_ids
where t.n = product_index.rowid and product_index match $1
order by product_index.rowid desc limit $2
"""
_LATELY = """(
  select n, record_id, words from product_terms where store_id = $1 order by n desc limit {0}
) as t"""
_SAMPLE = f"""
select count(*) as looked, count(*) filter (where true{{1}}) as found,
  coalesce(json_agg(record_id order by n desc) filter (where true{{1}}), '[]') as ids
from {_LATELY}
"""
_NEWEST = f"select record_id from {_LATELY} where true{{1}} limit {{2}}"
_GIN = """
select record_id from product_terms
where array_to_tsvector(string_to_array(btrim(words), ' ')) @@ cast($1 as tsquery) limit $2
"""
_PLACE = "/*sqlite instr(*/ /*postgres strpos(*/"
_RANK = f"""(case
  when {{0}}.sort_name = {{2}} or {{1}} in (
    select record_id from product_skus where owner_id = {{5}} and value in ({{6}}, {{7}}, {{8}})
  ) then 0
  when {_PLACE}{{0}}.sort_name || ' ', {{3}}) = 1 then 1
  when {_PLACE}' ' || {{0}}.sort_name, {{4}}) > 0 then 2
  else 3 end * {RANK} - {{0}}.created_at)"""

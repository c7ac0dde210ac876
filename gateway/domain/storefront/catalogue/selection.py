"""Selects the products of a list by categories, words, price and stock, in bounded work.

A list that one index has in its order is read from it. Any other is collected first: up to MOST of
its products, whatever the store has, and then sorted. A search has no more than these; any other
list with more is walked in its order, at most WALKED products a page, so that a page may be short.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.sales.products import ALL_PRODUCTS, IN_STOCK
from gateway.domain.storefront.catalogue.word_search import (
    MOST,
    TERMS,
    WALKED,
    Source,
    add_rank,
    found,
    ids_of,
)
from gateway.records.record import Record
from outbox.database.index_plans import by_index
from outbox.database.sql import items
from outbox.database.transaction import Tx

LISTED = 3 * MOST
"""Rows of listings that are collected: a product has one for each of its categories."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list of products holds. Prices are centavos, both ends included."""

    categories: Sequence[str] = (ALL_PRODUCTS,)
    """Folded names; a product has one of them."""
    search: str = ""
    lowest: int | None = None
    highest: int | None = None
    in_stock: bool = False

    @property
    def shelf(self) -> str:
        """The listing that holds all products of the selection."""
        values = self.categories
        return f"{IN_STOCK * self.in_stock}{values[0] if len(values) == 1 else ALL_PRODUCTS}"

    @property
    def searches(self) -> bool:
        """Whether it looks for words."""
        return bool(self.search)

    def is_read_in_order(self, column: str) -> bool:
        """Return whether an index has it, sorted by the column."""
        priced = self.lowest is not None or self.highest is not None
        return not self.searches and len(self.categories) == 1 and (not priced or column == "price")


def in_order(shop: Record, selection: Selection) -> Source:
    """Return the source of a selection that an index has in its order."""
    source = Source([shop.id, selection.shelf], f"product_shelves s where {_SHELF}")
    _narrow_price(source, selection)
    return source


async def collect(tx: Tx, shop: Record, selection: Selection) -> tuple[Sequence[str], bool]:
    """Return the ids of up to MOST products with the words of a search, and whether it has more.

    Without a search, the ids of all products of the selection, unless it has more than LISTED.
    """
    if selection.searches:
        names = [name for name in selection.categories if name != ALL_PRODUCTS]
        ids = await found(tx, shop, selection.search, names)
        return ids[:MOST], len(ids) > MOST
    await by_index(tx)
    source = Source([shop.id])
    listed = await ids_of(tx, _listed(source, selection), source)
    return list(dict.fromkeys(listed)), len(listed) > LISTED


def collected(
    shop: Record, selection: Selection, ids: Sequence[str], *, ranked: bool = False
) -> Source:
    """Return the source of the products of `collect`. `ranked`: the order is `Source.rank`."""
    source = Source([items(ids), selection.shelf], _BY_ID)
    if selection.searches:
        _narrow_price(source, selection)
        # The index has looked for few categories already.
        if len(selection.categories) > TERMS:
            _narrow_categories(source, selection)
    if ranked:
        add_rank(source, shop, selection.search)
    return source


def walk(shop: Record, selection: Selection, bounds: Source, order: str) -> tuple[Source, Source]:
    """Return the source of one page of a walk, and the place where the page ends at the latest.

    `bounds` are the conditions of the page, with the parameters so far.
    """
    rest = f"product_shelves s where {_SHELF}{bounds.sql} order by {order}"
    end = Source([*bounds.args], f"{rest} limit 1 offset {WALKED - 1}")
    source = Source(bounds.args, f"(select s.* from {rest} limit {WALKED}) as s where true")
    _narrow_price(source, selection)
    _narrow_categories(source, selection)
    return source, end


async def size(tx: Tx, shop: Record, selection: Selection) -> tuple[int, bool]:
    """Return the number of products of a selection that is not read in order.

    True stands for this number or more.
    """
    ids, more = await collect(tx, shop, selection)
    if not selection.searches:
        return (min(len(ids), MOST), True) if more else (len(ids), False)
    if selection == Selection(search=selection.search):
        return len(ids), more
    source = collected(shop, selection, ids)
    row = await tx.one(f"select count(*) as n from {source.sql}", *source.args)
    return (int(row["n"]) if row else 0), more


def _narrow_price(source: Source, selection: Selection) -> None:
    if selection.lowest is not None:
        source.narrow("s.price >= {0}", selection.lowest)
    if selection.highest is not None:
        source.narrow("s.price <= {0}", selection.highest)


def _narrow_categories(source: Source, selection: Selection) -> None:
    if tuple(selection.categories) != (ALL_PRODUCTS,):
        source.narrow(_IN_CATEGORIES, items(list(selection.categories)))


def _listed(source: Source, selection: Selection) -> str:
    """Return the query of the first listings with the selection's categories and prices."""
    mark = IN_STOCK * selection.in_stock
    source.args.append(items([f"{mark}{value}" for value in selection.categories]))
    inner = Source(source.args)
    values = _VALUES.format(f"${len(source.args)}")
    _narrow_price(inner, selection)
    return (
        f"select s.record_id from {values} cross join product_shelves s"
        f" where s.store_id = $1 and s.value = v.value{inner.sql} limit {LISTED + 1}"
    )


_SHELF = "s.store_id = $1 and s.value = $2"
_VALUES = """
/*sqlite json_each({0}) as v*/
/*postgres json_array_elements_text(cast({0} as json)) as v (value)*/
"""
# LATERAL and OFFSET keep PostgreSQL from reading all listings, whatever its statistics say.
_BY_ID = f"""{_VALUES.format("$1")} cross join
/*sqlite product_shelves s where s.record_id = v.value and s.value = $2*/
/*postgres lateral (
  select l.* from product_shelves l where l.record_id = v.value and l.value = $2 offset 0
) as s where true*/"""
_IN_CATEGORIES = f"""exists (
  select 1 from product_shelves c
  where c.record_id = s.record_id and c.value in (select v.value from {_VALUES})
  /*postgres offset 0*/
)"""

"""Provides the form of reports, and sums that cannot overflow.

Queries add amounts in two parts, whole millions and the rest, because the sum of very many amounts
exceeds the integers of the engines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NewType, TypeVar

from msgspec import json

from gateway.domain.reports.periods import Period, ReportQuery, Span, span
from gateway.records.audit import Actor
from outbox.database.transaction import Row, Tx

Cents = NewType("Cents", int)
"""An amount in centavos."""
FiguresT = TypeVar("FiguresT")
TotalsT = TypeVar("TotalsT")
PART = 1_000_000
EVER = 2**62
"""Later than any date, in microseconds; its negative is earlier than any."""
# One row per period, from a JSON array of [n, first, until]. The engines parse JSON differently.
PERIODS = """
(select /*sqlite
  json_extract(value, '$[0]') as n, json_extract(value, '$[1]') as first,
  json_extract(value, '$[2]') as until from json_each($2) */ /*postgres
  cast(value ->> 0 as bigint) as n, cast(value ->> 1 as bigint) as first,
  cast(value ->> 2 as bigint) as until from json_array_elements(cast($2 as json)) as t (value) */
) as p"""


@dataclass(frozen=True, slots=True)
class Report(Generic[FiguresT, TotalsT]):
    """A report: the time span that it covers, its rows by the name of their group, and totals."""

    span: Span
    rows: Sequence[tuple[str, FiguresT]]
    totals: TotalsT


def span_of(tx: Tx, actor: Actor, query: ReportQuery, group_by: Sequence[str]) -> Span:
    """Return the Span of a request, by default in the owner's time zone.

    Raises forbidden, validation_error.
    """
    actor.must("read")
    return span(query, group_by, tx.now, actor.zone)


def parts(column: str) -> str:
    """Return SQL for the two sums of a column of centavos, for `worth`."""
    return f"sum({column} / {PART}) as millions, sum({column} % {PART}) as rest"


def worth(row: Row) -> Cents:
    """Return the sum of a row selected with `parts`, in centavos."""
    return Cents(int(row["millions"] or 0) * PART + int(row["rest"] or 0))


def as_rows(periods: Sequence[Period]) -> str:
    """Return the parameter `$2` of a statement with PERIODS; its rows are numbered from 0."""
    return json.encode([(n, p.first, p.until) for n, p in enumerate(periods)]).decode()


def bounds(span: Span) -> tuple[int, int]:
    """Return `first` and `until`, with -EVER and EVER for unbounded sides."""
    first = -EVER if span.first is None else span.first
    return first, EVER if span.until is None else span.until

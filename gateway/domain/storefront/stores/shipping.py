"""Computes the ways to ship to a CEP from a store's rules."""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct, json

from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.values import cep as ceps
from gateway.records.values.formats import Wrong

NO_RULES = "[]"
"""The stored rules of a store without any, which sells goods without a way to ship."""
_CEP = ceps.cep()


class Option(Struct, frozen=True):
    """A way to ship a cart: the price in centavos, the deadline in days."""

    type: str
    name: str
    price: int
    deadline: int
    free_from: int | None = None
    """The least total of the products for which it is free."""
    prices: frozenset[int] = frozenset()
    """What it may cost: the price of its rule, and 0 where it can be free."""


class _Rule(Struct, frozen=True, rename="camel"):
    """A way to ship to a range of CEPs, as a store keeps it."""

    type: str
    name: str
    price: int
    deadline: int
    cep_from: str
    cep_to: str
    free_from: int | None = None

    def option(self, total: int) -> Option:
        """Return the way to ship products that cost `total`."""
        free = self.free_from is not None and total >= self.free_from
        prices = {self.price} if self.free_from is None else {self.price, 0}
        return Option(
            self.type, self.name, 0 if free else self.price, self.deadline, self.free_from,
            frozenset(prices),
        )  # fmt: skip


def cep_of(text: str) -> str:
    """Return the eight digits of a CEP. Raises invalid_cep."""
    try:
        cep: str = _CEP.check(text)
    except Wrong as wrong:
        raise _refusal("invalid_cep", "cep", wrong.message) from None
    return cep


def options(store: Record, cep: str, total: int) -> Sequence[Option]:
    """Return the ways to ship products that cost `total` to a CEP of eight digits.

    Empty where the store does not ship.
    """
    return [
        rule.option(total)
        for rule in _rules(store["shipping_rules"])
        if rule.cep_from <= cep <= rule.cep_to
    ]


def chosen(store: Record, cep: str, option_type: str | None, total: int) -> Option | None:
    """Return the option of the type `option_type` for a CEP, or None without a type.

    `total` is that of the products. Raises shipping_unavailable when the store does not ship there,
    or not in that way.
    """
    offered = options(store, cep, total)
    if not offered:
        raise _refusal("shipping_unavailable", "cep", "The store does not ship to this CEP.")
    if option_type is None:
        return None
    for option in offered:
        if option.type == option_type:
            return option
    types = ", ".join(option.type for option in offered)
    raise _refusal("shipping_unavailable", "type", f"Send one of the types: {types}.")


def faults(text: str) -> list[Fault]:
    """Return the faults of a store's rules in their stored form.

    A range begins before it ends, and no CEP has two rules of one type.
    """
    faults_found = []
    rules = _rules(text)
    for index, rule in enumerate(rules):
        at = f"shippingRules[{index}]"
        if rule.cep_from > rule.cep_to:
            message = "cepFrom must not be after cepTo."
            faults_found.append(Fault(f"{at}.cepTo", "disagrees", message))
        elif any(_overlap(rule, earlier_rule) for earlier_rule in rules[:index]):
            message = "An earlier rule has this type for a CEP of the range."
            faults_found.append(Fault(f"{at}.type", "taken", message))
    return faults_found


def _overlap(rule: _Rule, other: _Rule) -> bool:
    overlap = rule.cep_from <= other.cep_to and other.cep_from <= rule.cep_to
    return overlap and rule.type == other.type


@lru_cache(maxsize=256)
def _rules(text: str) -> list[_Rule]:
    return json.decode(text, type=list[_Rule])


def _refusal(code: str, field: str, message: str) -> Refusal:
    return Refusal(code, message, faults=[Fault(field, code, message)])

"""The texts of the mails to buyers, from the catalogue of each language, and their amounts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from babel import Locale

from gateway import texts
from gateway.domain.sales.order_mails import Kind

KINDS: Mapping[Kind, int] = {
    "order_received": 1, "order_paid": 1, "order_canceled": 2, "order_expired": 2,
}  # fmt: skip
"""The kinds of mails, and how many sentences each opens with."""
METHODS = ("pix", "boleto", "card", "transfer", "cash")


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of the mails in one language."""

    money: Callable[[int], str]
    """Shows an amount in centavos."""
    titles: Mapping[Kind, str]
    opening: Mapping[Kind, tuple[str, ...]]
    free_title: str
    free_opening: str
    hello: str
    hello_name: str
    pay_pix: str
    pay_other: str
    pix_code: str
    lasts: str
    link: str
    link_warning: str
    not_you: str
    items: str
    more_items: str
    subtotal: str
    discount: str
    shipping: str
    free: str
    total: str
    footer: str
    date: str
    """A pattern of Babel."""
    time: str
    brasilia: str
    locale: Locale
    methods: Mapping[str, str]


@cache
def of(code: str) -> Texts:
    """Return the texts of the mails in a language."""
    language = texts.of(code)

    def money(centavos: int) -> str:
        return language.money(centavos / 100).replace("\xa0", " ")

    def raw(key: str) -> str:
        """Return a text with its placeholders."""
        return language.forms[f"mail.{key}"][0]

    return Texts(
        money=money,
        titles={kind: raw(f"{kind}.title") for kind in KINDS},
        opening={
            kind: tuple(raw(f"{kind}.opening_{place}") for place in range(1, count + 1))
            for kind, count in KINDS.items()
        },
        free_title=raw("free_title"), free_opening=raw("free_opening"),
        hello=raw("hello"), hello_name=raw("hello_name"),
        pay_pix=raw("pay_pix"), pay_other=raw("pay_other"), pix_code=raw("pix_code"),
        lasts=raw("lasts"), link=raw("link"), link_warning=raw("link_warning"),
        not_you=raw("not_you"), items=raw("items"), more_items=raw("more_items"),
        subtotal=raw("subtotal"), discount=raw("discount"), shipping=raw("shipping"),
        free=raw("free"), total=raw("total"), footer=raw("footer"), date=raw("date"),
        time=raw("time"), brasilia=raw("brasilia"), locale=language.locale,
        methods={method: raw(f"method.{method}") for method in METHODS},
    )  # fmt: skip

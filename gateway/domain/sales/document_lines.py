"""Checks, stores and shows the lines of quotes and invoices, and computes their totals.

They are stored as JSON text in their document, amounts in centavos, quantities in thousandths.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from gateway.records import store
from gateway.records.errors import Fault
from gateway.records.values import formats, nested, numbers
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.nested import Member
from outbox.database.transaction import Tx

MOST = 200


class Line(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A line. `discount` applies to the whole line, `total` is its amount."""

    description: str
    quantity: int
    unit_price: int
    total: int
    discount: int = 0
    product_id: str | None = None
    id: str = ""
    """Empty until `named` sets it."""


_decode = json.Decoder(list[Line]).decode

MEMBERS = (
    Member("id", formats.text(24), "Id of the line of the document that it replaces."),
    Member("productId", formats.id_of("product"), "The product of the line."),
    Member("description", formats.title(500), "Description of the line.", required=True),
    Member("quantity", numbers.quantity(), "Quantity, with up to 3 decimals.", required=True),
    Member("unitPrice", numbers.money(), "Price of one unit in BRL.", required=True),
    Member("discount", numbers.money(), "Discount on the line, in BRL."),
    Member("total", numbers.money(), "Amount of the line; checked when sent."),
)
EXAMPLE = [{"description": "Coffee beans 1 kg", "quantity": 2, "unitPrice": 89.9, "discount": 9.8}]
SHOWN_EXAMPLE = [
    {"id": "019a9d1c2f004b7de1a0c3f2", **EXAMPLE[0], "total": 170},
]


def items(least: int) -> Format:
    """Return the format of the field `items`: `text` of lines, new ones still without an id."""
    members = nested.object_of(MEMBERS)

    def one(value: Any, from_json: bool) -> Line:
        return _line(members.accept(value, from_json=from_json))

    line = formats.composite(one, members.schema)

    def parts(value: Any, from_json: bool) -> str:
        return text(formats.several(line, value, from_json, MOST, least))

    # A line in a response has all members; only the product is optional.
    whole = [m.name for m in MEMBERS if m.name != "productId"]
    shown = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                m.name: {**(m.format.shown or m.format.schema), "description": m.description}
                for m in MEMBERS
            },
            "required": whole,
        },
    }
    return formats.composite(parts, nested.list_schema(line, MOST, least), _show, shown)


def text(lines: Sequence[Line]) -> str:
    """Return the stored form of lines."""
    return json.encode(lines).decode()


def read(stored: str) -> list[Line]:
    """Return the lines of their stored form."""
    return _decode(stored)


def named(tx: Tx, lines: Sequence[Line], before: Sequence[Line]) -> list[Line]:
    """Return `lines` with ids: a line that the document already has keeps its id."""
    old = {line.id: line for line in before}
    free = old.keys() - {line.id for line in lines}
    alike: dict[Line, list[str]] = {}
    for line in reversed(before):
        if line.id in free:
            alike.setdefault(replace(line, id=""), []).append(line.id)
    identified: list[Line] = []
    for line in lines:
        if old.pop(line.id, None) is None:
            # A line of an imported file has the id that it had in another account.
            same = alike.get(replace(line, id=""))
            line = replace(line, id=same.pop() if same else tx.new_id())
        identified.append(line)
    return identified


async def product_faults(
    tx: Tx, owner_id: str, lines: Sequence[Line], before: Sequence[Line]
) -> list[Fault]:
    """Return a fault for each product that the owner lacks, except products of earlier lines."""
    known = {line.product_id for line in before}
    ids = sorted({line.product_id for line in lines if line.product_id} - known)
    owned = await store.owned_of(tx, "products", owner_id, ids)
    wrong = formats.missing("product")
    return [
        fault
        for i, line in enumerate(lines)
        if line.product_id in ids and line.product_id not in owned
        for fault in wrong.faults(f"items[{i}].productId")
    ]


def half_up(numerator: int, denominator: int) -> int:
    """Return numerator / denominator, neither negative, rounded half up to a whole number."""
    return (2 * numerator + denominator) // (2 * denominator)


def _line(sent: Mapping[str, Any]) -> Line:
    worth = half_up(sent["quantity"] * sent["unitPrice"], 1000)
    discount = sent.get("discount", 0)
    if worth > numbers.MOST_CENTAVOS:
        raise Wrong("out_of_range", "The amount of the line is too large.", ".quantity")
    if discount > worth:
        message = "discount must not exceed the amount of the line."
        raise Wrong("too_large", message, ".discount")
    total = worth - discount
    if sent.get("total", total) != total:
        message = f"total must be {numbers.show_money(total)}, or absent."
        raise Wrong("disagrees", message, ".total")
    return Line(
        description=sent["description"],
        quantity=sent["quantity"],
        unit_price=sent["unitPrice"],
        total=total,
        discount=discount,
        product_id=sent.get("productId"),
        id=sent.get("id", "").lower(),
    )


def _show(stored: str) -> list[dict[str, Any]]:
    money, objects = numbers.show_money, []
    for line in _decode(stored):
        shown: dict[str, Any] = {"id": line.id}
        if line.product_id is not None:
            shown["productId"] = line.product_id
        shown["description"] = line.description
        shown["quantity"] = numbers.show_quantity(line.quantity)
        shown["unitPrice"] = money(line.unit_price)
        shown["discount"] = money(line.discount)
        shown["total"] = money(line.total)
        objects.append(shown)
    return objects

"""Stores the addresses of customers."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.shopper import Shopper, account_deleted
from gateway.records import audit, record
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.records.values import postal
from gateway.records.values.folding import filled
from outbox.database.transaction import Row, Tx
from outbox.ids import is_id

ADDRESS = Form(
    noun="address",
    description="A postal address.",
    fields=tuple(
        Field(
            member.name, member.name, member.format, member.description,
            postal.EXAMPLE.get(member.name, ""), required=member.required,
        )
        for member in postal.ADDRESS
    ),
)  # fmt: skip
Address = dict[str, Any]
"""A stored address: its id, and its values by name."""
MOST = 50
"""Most addresses of one customer."""
COLUMNS = tuple(field.column for field in ADDRESS.fields)

_LISTED = f"""
select id, {", ".join(COLUMNS)} from customer_addresses where customer_id = $1
order by created_at, id
"""
_ADD = f"""
insert into customer_addresses (id, customer_id, created_at, {", ".join(COLUMNS)})
values ($1, $2, $3, {", ".join(f"${4 + i}" for i in range(len(COLUMNS)))}) returning *
"""
_CHANGE = f"""
update customer_addresses set {", ".join(f"{c} = ${3 + i}" for i, c in enumerate(COLUMNS))}
where id = $1 and customer_id = $2 returning *
"""


def check(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of an address by column. Raises their faults."""
    checked = record.check(ADDRESS, filled(values), creating=True)
    checked.must_hold()
    return checked.values


async def listed(tx: Tx, customer_id: str) -> list[Address]:
    """Return the addresses of a customer, the oldest first."""
    return [_address(row) for row in await tx.all(_LISTED, customer_id)]


async def save(
    tx: Tx, visitor: Shopper, address_id: str | None, values: Mapping[str, Any]
) -> Address:
    """Create an address of the customer, or replace the one with this id.

    Raises not_found, conflict, and unauthenticated when the account was deleted meanwhile.
    """
    customer_id = visitor.must_be_customer()
    row = [values.get(column) for column in COLUMNS]
    if address_id is not None:
        changed = None
        if is_id(address_id):
            changed = await tx.one(_CHANGE, address_id.lower(), customer_id, *row)
        if changed is None:
            raise _unknown()
        _note(tx, visitor)
        return _address(changed)
    # The lock makes concurrent requests count each other's addresses.
    if not await customers.lock(tx, customer_id):
        raise account_deleted()
    count = await tx.one(
        "select count(*) as n from customer_addresses where customer_id = $1", customer_id
    )
    if count is not None and count["n"] >= MOST:
        raise Refusal("conflict", f"You have {MOST} addresses; delete one first.")
    added = await tx.one(_ADD, tx.new_id(), customer_id, tx.now, *row)
    assert added is not None
    _note(tx, visitor)
    return _address(added)


async def delete(tx: Tx, visitor: Shopper, address_id: str) -> None:
    """Delete an address of the customer. Raises unauthenticated, not_found."""
    if not is_id(address_id) or not await tx.run(
        "delete from customer_addresses where id = $1 and customer_id = $2",
        address_id.lower(),
        visitor.must_be_customer(),
    ):
        raise _unknown()
    _note(tx, visitor)


def _note(tx: Tx, visitor: Shopper) -> None:
    noun = customers.CUSTOMERS.noun
    audit.record(tx, visitor.actor, "updated", noun, visitor.customer_id, ["addresses"])


def _address(row: Row) -> Address:
    return {name: row[name] for name in ("id", *COLUMNS)}


def _unknown() -> Refusal:
    message = "You have no address with this id."
    return Refusal("not_found", message, faults=[Fault("id", "unknown", message)])

"""Stores what documents say about the company of an owner, and the prefixes of their numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.records import actions, audit
from gateway.records.audit import Actor
from gateway.records.record import Draft
from gateway.records.resource import Field, Form
from gateway.records.values import cnpj, formats, pix_key
from outbox.database.transaction import Row, Tx

NOUN = "company_settings"
PREFIXES = {"quotes": "Q", "invoices": "INV", "orders": "ORD"}
"""The usual prefixes of numbers, by table."""
PREFIX_COLUMNS = {"quotes": "quote_prefix", "invoices": "invoice_prefix", "orders": "order_prefix"}
_PREFIX = "Numbers that were issued stay as they are."

COMPANY = Form(
    noun="company settings",
    description="What quotes and invoices say about the company that sends them.",
    fields=(
        Field("tradeName", "trade_name", formats.title(), "Trade name.", "Coffee Shop"),
        Field("legalName", "legal_name", formats.title(), "Legal name.", "Coffee Shop Ltda"),
        Field(
            "cnpj", "cnpj", cnpj.cnpj(),
            "Brazilian company number, digits only or alphanumeric, with or without its mask.",
            "11.222.333/0001-81",
        ),
        Field(
            "address", "address", formats.text(500), "Postal address, in several lines if needed.",
            "Rua das Flores 12\n01001-000 São Paulo SP",
        ),
        Field("phone", "phone", formats.phone(), "Phone with area code.", "(11) 3333-4444"),
        Field(
            "bankDetails", "bank_details", formats.text(500),
            "Bank account for transfers, in several lines if needed.",
            "Banco 001, agência 1234, conta 56789-0",
        ),
        Field(
            "pixKey", "pix_key", pix_key.pix_key(),
            "Pix key that receives the payments of invoices: a CPF, a CNPJ, an e-mail address, a "
            "phone with +55, or a random key. Pending invoices show its code.",
            "pix@shop.example.com",
        ),
        Field(
            "quotePrefix", "quote_prefix", formats.code(12),
            f"Prefix of the numbers of new quotes, Q without one. {_PREFIX}", "ORC",
        ),
        Field(
            "invoicePrefix", "invoice_prefix", formats.code(12),
            f"Prefix of the numbers of new invoices, INV without one. {_PREFIX}", "FAT",
        ),
        Field(
            "orderPrefix", "order_prefix", formats.code(12),
            f"Prefix of the numbers of new orders, ORD without one. {_PREFIX}", "PED",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Logo:
    """A picture in a format that pages and PDF files can show."""

    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CompanySettings:
    """The settings of an owner by column; those that are not set are None."""

    values: Mapping[str, str | None] = field(
        default_factory=lambda: {one.column: None for one in COMPANY.fields}
    )
    version: int = 0
    logo: Logo | None = None

    def shown(self) -> dict[str, str]:
        """Return the set fields by their JSON names."""
        pairs = ((one.name, self.values[one.column]) for one in COMPANY.fields)
        return {name: value for name, value in pairs if value is not None}


_COLUMNS = ", ".join(one.column for one in COMPANY.fields)
_SELECT = f"select {_COLUMNS}, version, logo, logo_type from company_settings where owner_id = $1"
_INSERT = """
insert into company_settings (owner_id, version) values ($1, 0) on conflict (owner_id) do nothing
"""
_SET = ", ".join(f"{one.column} = ${place}" for place, one in enumerate(COMPANY.fields, 2))
_UPDATE = f"update company_settings set {_SET}, version = version + 1 where owner_id = $1"
_SET_LOGO = """
update company_settings set logo = $2, logo_type = $3, version = version + 1 where owner_id = $1
"""


async def of(tx: Tx, owner_id: str) -> CompanySettings:
    """Return the settings of an owner."""
    return _settings(await tx.one(_SELECT, owner_id))


async def read(tx: Tx, actor: Actor) -> CompanySettings:
    """Return the owner's settings for a door. Raises forbidden."""
    actor.must("read")
    return await of(tx, actor.owner_id)


async def change(
    tx: Tx, actor: Actor, draft: Draft, expected: frozenset[str] | None = None
) -> CompanySettings:
    """Change the settings; null clears one.

    `expected` are versions as text. Raises forbidden, the faults of the draft,
    precondition_failed.
    """
    actor.must("write")
    draft.must_hold()
    before = await _locked(tx, actor.owner_id)
    etag = str(before.version)
    if expected is not None and actions.ANY not in expected and etag not in expected:
        raise actions.changed_meanwhile(etag)
    values = {column: draft.values.get(column, value) for column, value in before.values.items()}
    fields = [
        field.name
        for field in COMPANY.fields
        if values[field.column] != before.values[field.column]
    ]
    if not fields:
        return before
    audit.record(tx, actor, "updated", NOUN, None, fields)
    await tx.run(_UPDATE, actor.owner_id, *values.values())
    return await of(tx, actor.owner_id)


async def set_logo(tx: Tx, actor: Actor, logo: Logo | None) -> None:
    """Set or remove the logo. Raises forbidden."""
    actor.must("write")
    before = await _locked(tx, actor.owner_id)
    if before.logo == logo:
        return
    audit.record(tx, actor, "updated", NOUN, None, ["logo"])
    data, media_type = (None, None) if logo is None else (logo.data, logo.media_type)
    await tx.run(_SET_LOGO, actor.owner_id, data, media_type)


async def _locked(tx: Tx, owner_id: str) -> CompanySettings:
    """Return the settings; their row is locked, so that concurrent changes run one by one."""
    await tx.run(_INSERT, owner_id)
    return _settings(await tx.one(f"{_SELECT} /*postgres for update*/", owner_id))


def _settings(row: Row | None) -> CompanySettings:
    if row is None:
        return CompanySettings()
    values: dict[str, Any] = {one.column: row[one.column] for one in COMPANY.fields}
    logo = None
    if row["logo"] is not None:
        logo = Logo(row["logo_type"], bytes(row["logo"]))
    return CompanySettings(values, row["version"], logo)

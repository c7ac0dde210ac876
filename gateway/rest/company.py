"""Handles the settings of what documents say about the company of an owner."""

from typing import Any

import msgspec
from msgspec import Struct

from gateway.domain.sales import company_settings
from gateway.domain.sales.company_settings import COMPANY, CompanySettings
from gateway.rest import settings
from gateway.rest.document import shapes
from gateway.rest.document.describe import IF_MATCH, IF_NONE_MATCH
from gateway.rest.document.operations import operation

Company: Any = msgspec.defstruct(
    "CompanySettings",
    [(field.name, str | msgspec.UnsetType, msgspec.UNSET) for field in COMPANY.fields],
    bases=(Struct,),
    frozen=True,
)
Company.__doc__ = "What documents say about the company of an owner; unset fields are absent."
SHAPE = shapes.struct(Company(**{field.name: field.example for field in COMPANY.fields}))
CHANGED = shapes.written(SHAPE)


def _shown(stored: CompanySettings) -> Struct:
    shown: Struct = Company(**stored.shown())
    return shown


read_company = operation(
    "getCompanySettings", "Account", "Read what documents say about your company", SHAPE,
    headers=("ETag",), parameters=(IF_NONE_MATCH,),
)(settings.reads(company_settings.read, _shown))  # fmt: skip
change_company = operation(
    "updateCompanySettings", "Account", "Set what documents say about your company", CHANGED,
    headers=("ETag", "X-Ignored-Fields"), parameters=(IF_MATCH,), body=shapes.changes(COMPANY),
    description="The logo is uploaded in the console. Numbers that were issued keep their prefix. "
    "A key without the scope `read` gets an empty object and the ETag.",
)(settings.changes(COMPANY, company_settings.change, _shown))  # fmt: skip

"""Declares companies, the organisations of contacts and deals."""

from gateway.records.resource import (
    BY_NAME,
    BY_TIME,
    DerivedColumn,
    Field,
    Filter,
    Remove,
    Resource,
    Unset,
)
from gateway.records.values import cnpj, formats

COMPANIES = Resource(
    noun="company",
    plural="companies",
    table="companies",
    description="An organisation, by its legal or trade name.",
    fields=(
        Field("name", "name", formats.title(), "Legal or trade name.", "Acme Ltda", required=True),
        Field(
            "cnpj", "cnpj", cnpj.cnpj(),
            "Brazilian company number, digits only or alphanumeric, with or without its mask; "
            "stored unchanged.",
            "11.222.333/0001-81", beside=(DerivedColumn("cnpj_normal", cnpj.normal),),
        ),
        Field("website", "website", formats.website(), "URL or host name.", "https://acme.example"),
        Field("industry", "industry", formats.text(200), "Sector.", "Retail"),
        Field(
            "size", "size", formats.one_of("1-10", "11-50", "51-200", "201-1000", "1000+"),
            "Number of people.", "11-50",
        ),
        Field("email", "email", formats.email(), "E-mail address.", "hello@acme.example"),
        Field(
            "phone", "phone", formats.phone(), "Phone with area code, stored unchanged.",
            "(11) 3333-4444", beside=(DerivedColumn("phone_e164", formats.e164),),
        ),
        Field(
            "phoneE164", "phone_e164", formats.text(20),
            "The phone in E.164, if it can be derived.", "+551133334444",
            on_create=False, on_update=False,
        ),
        Field("notes", "notes", formats.text(formats.LONG), "Notes.", "Pays on time."),
    ),
    events={
        "created": ("id", "name", "cnpj", "createdAt"),
        "updated": ("id", "name", "updatedAt"),
        "deleted": ("id",),
    },
    search=("name", "email"),
    numbers=("phone", "cnpj"),
    folded_sort="name",
    key="cnpj",
    sorts=(*BY_TIME, BY_NAME),
    filters=(
        Filter(
            "cnpj", "cnpj_normal = {}", "cnpj",
            "Only the company with this number, with or without its mask.",
        ),
    ),
    cascades=(
        Unset("contacts", "company_id"),
        Unset("deals", "company_id"),
        Unset("quotes", "company_id"),
        Unset("invoices", "company_id"),
        Remove("activities", "related_id"),
    ),
)  # fmt: skip

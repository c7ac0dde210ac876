"""Declares e-books, which a store gives for the data of a lead."""

from gateway.records.derived import global_id_of
from gateway.records.resource import BY_TIME, Field, Filter, Reference, Resource, Sort
from gateway.records.values import formats

EBOOKS = Resource(
    noun="ebook",
    plural="ebooks",
    table="ebooks",
    description="An e-book that the storefront gives to whoever leaves an email address.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store that offers it.",
            "018f3a5b7c9d1e2f3a4b5c70", required=True, on_update=False,
            reference=Reference("store", "stores", owns=True),
        ),
        Field("title", "title", formats.title(), "Title.", "The guide to coffee", required=True),
        Field(
            "fileUrl", "file_url", formats.url(), "URL of the file, which the lead receives.",
            "https://files.example.com/guide.pdf", required=True,
        ),
        Field(
            "active", "active", formats.boolean(), "Whether the storefront gives it.", True,
            default=True,
        ),
    ),
    events={},
    derived=(global_id_of("Ebook"),),
    search=("title",),
    folded_sort="title",
    sorts=(*BY_TIME, Sort("title", "sort_name", text=True)),
    filters=(
        Filter("storeId", "store_id = {}", "id", "Only e-books of this store."),
        Filter("active", "active = {}", "boolean", "Only active (true) or inactive e-books."),
    ),
)  # fmt: skip

"""Declares products, which the storefront uses too."""

from gateway.records.resource import BY_NAME, BY_TIME, Field, Filter, Resource, Sort, Unique
from gateway.records.values import formats, nested, numbers
from gateway.records.values.nested import Member

PRODUCTS = Resource(
    noun="product",
    plural="products",
    table="products",
    description="A product with its price in BRL.",
    fields=(
        Field("name", "name", formats.title(), "Name.", "Coffee beans 1 kg", required=True),
        Field(
            "description", "description", formats.text(formats.LONG), "Description.",
            "Medium roast, whole beans.",
        ),
        Field(
            "sku", "sku", formats.title(64), "Stock keeping unit; unique per owner.",
            "COF-1000", unique=Unique("product_skus"),
        ),
        Field(
            "slug", "slug", formats.slug(), "Part of the product's address in the shop.",
            "coffee-beans-1-kg",
        ),
        Field("price", "price", numbers.money(), "Price in BRL.", 89.9, required=True),
        Field(
            "compareAtPrice", "compare_at_price", numbers.money(), "Price before a reduction.",
            109.9,
        ),
        Field(
            "currency", "currency", formats.one_of("BRL"), "Currency of the prices.", "BRL",
            on_create=False, on_update=False, default="BRL",
        ),
        Field(
            "stock", "stock", numbers.integer(0, 1_000_000_000),
            "Number in stock; null means unlimited.", 25, always=True,
        ),
        Field(
            "weightGrams", "weight_grams", numbers.integer(0, 1_000_000_000), "Weight in grams.",
            1050,
        ),
        Field(
            "categories", "categories", nested.tags(), "Categories, without repeats.",
            ["Coffee"], default="[]", listed_in="product_categories",
        ),
        Field(
            "images", "images",
            nested.objects(
                (
                    Member("url", formats.url(), "URL of the image.", required=True),
                    Member("alt", formats.text(500), "Alternative text of the image."),
                ),
                50,
            ),
            "Images in order.",
            [{"url": "https://shop.example/coffee.jpg", "alt": "A bag of coffee"}], default="[]",
        ),
        Field(
            "active", "active", formats.boolean(), "Whether it is for sale.", True, default=True,
        ),
        Field(
            "published", "published", formats.boolean(), "Whether the shop shows it.", True,
            default=True,
        ),
        # Not writable yet, because there are no shops.
        Field(
            "storeId", "store_id", formats.id_of("store"), "The shop that sells it.",
            "018f3a5b7c9d1e2f3a4b5c70", on_create=False, on_update=False,
        ),
    ),
    events={
        "created": ("id", "name", "price", "createdAt"),
        "updated": ("id", "name", "price", "updatedAt"),
        "deleted": ("id",),
    },
    search=("name", "sku"),
    folded_sort="name",
    sorts=(*BY_TIME, BY_NAME, Sort("price", "price")),
    filters=(
        Filter(
            "category",
            "id in (select record_id from product_categories where owner_id = $1 and value = {})",
            "text", "Only products with exactly this category.",
        ),
        Filter(
            "sku",
            "id in (select record_id from product_skus where owner_id = $1 and value = {})",
            "text", "Only the product with this sku.",
        ),
        Filter(
            "active", "active = {}", "boolean",
            "Only products that are for sale (true) or not for sale (false).",
        ),
        Filter(
            "published", "published = {}", "boolean",
            "Only products that the shop shows (true) or hides (false).",
        ),
    ),
)  # fmt: skip

"""Tests products over HTTP: prices, stock, categories, images and unique skus."""

from tests.support.rest import Person


async def test_every_fault_is_reported_at_once(ana: Person) -> None:
    body = {
        "price": 1.001, "compareAtPrice": -1, "stock": 1.5, "weightGrams": "1", "sku": " ",
        "slug": "Not A Slug", "categories": [1], "active": "yes", "published": 1,
        "images": [{"alt": 5}, {"url": "ftp://x.example"}, "x", {"url": "https://x.example/ y"}],
    }  # fmt: skip
    reply = await ana.post("/api/products", body)
    assert (reply.status, reply.faults) == (400, {
        "name": "required", "price": "too_precise", "compareAtPrice": "out_of_range",
        "stock": "wrong_type", "weightGrams": "wrong_type", "sku": "blank", "slug": "invalid_slug",
        "categories[0]": "wrong_type", "active": "wrong_type", "published": "wrong_type",
        "images[0].url": "required", "images[0].alt": "wrong_type", "images[1].url": "invalid_url",
        "images[2]": "wrong_type", "images[3].url": "invalid_url",
    })  # fmt: skip
    body = {"name": "X", "price": 1, "images": [{"url": "https://x.example"}] * 51}
    too_many = await ana.post("/api/products", body | {"stock": 10**18})
    assert too_many.faults == {"images": "too_many", "stock": "out_of_range"}

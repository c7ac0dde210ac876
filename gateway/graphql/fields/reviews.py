"""Resolves reviews."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.storefront.catalogue import reviews
from gateway.graphql.connections import connection, slice_request
from gateway.graphql.fields.nodes import Public
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.record import Record
from gateway.records.values import global_ids


async def of_hostname(visit: RequestContext, args: Args) -> Any:
    visitor = await visit.visitor(args["hostname"])
    product_id = global_ids.record_id(args["productId"], "Product", "productId")
    await visit.read(reviews.shown, visitor, product_id)
    return await _page(visit, product_id, args)


async def of_product(product: Record, visit: RequestContext, args: Args) -> Any:
    return await _page(visit, product.id, args)


async def _page(visit: RequestContext, product_id: str, args: Args) -> Any:
    request = slice_request(args)
    page = await visit.loaders.load(reviews.first_of_products, product_id, request)
    assert page is not None, "each product has a list"

    async def count() -> int:
        return (await _totals(visit, product_id))[0]

    return connection(page, request, count)


async def _totals(visit: RequestContext, product_id: str) -> tuple[int, int]:
    """Return the number of published reviews and the sum of their stars."""
    return await visit.loaders.load(reviews.totals_of_products, product_id) or (0, 0)


async def reviews_count(product: Record, visit: RequestContext, args: Args) -> int:
    return (await _totals(visit, product.id))[0]


async def average_stars(product: Record, visit: RequestContext, args: Args) -> float | None:
    count, stars = await _totals(visit, product.id)
    return round(stars / count, 2) if count else None


async def create_review(visit: RequestContext, sent: Args) -> Args:
    visitor = await visit.visitor(sent["hostname"])
    visitor.must_be_customer()
    product_id = global_ids.record_id(sent["productId"], "Product", "productId")
    review = await visit.write(reviews.create, visitor, product_id, sent)
    return {"review": review}


NODES: Public = {"Review": reviews.public}
QUERIES: Mapping[str, Resolver] = {"reviews": of_hostname}
MUTATIONS: Mapping[str, Resolver] = {"createReview": create_review}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "Product": {
        "reviews": of_product,
        "reviewsCount": reviews_count,
        "averageStars": average_stars,
    },
    "Review": {
        "id": lambda review, visit, args: global_ids.global_id("Review", review.id),
        "stars": lambda review, visit, args: review["stars"],
        "text": lambda review, visit, args: review["text"],
        "author": lambda review, visit, args: review["author"],
        "createdAt": lambda review, visit, args: review.shown("createdAt"),
    },
}

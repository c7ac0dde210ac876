"""An output that is never null is declared non-null; each nullable one has its reason here."""

from __future__ import annotations

from graphql import (
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLType,
)

from gateway.graphql.schema import schema
from tests.gateway.graphql.test_contract import FIELDS

NULLABLE = {
    # What the record may lack.
    "Address.id", "Address.name", "Address.complement", "Address.district",
    "AuthUser.email", "AuthUser.phone",
    "Category.parent", "Image.alt", "Review.author",
    "Client.user",
    "Coupon.discountPercentage", "Coupon.discountValue",
    "DiscountModal.discountPercentage", "DiscountModal.discountValue",
    "Product.description", "Product.compareAtPrice", "Product.sku", "Product.stock",
    "Product.averageStars", "Product.updatedAt",
    "ShoppingCart.cep", "ShoppingCart.shippingType", "CartWarning.productId",
    "Order.coupon", "Order.shipping", "Order.address", "Order.notes", "Order.accessToken",
    "Order.checkoutUrl", "Order.paidAt", "Order.canceledAt", "Payment.pixCode",
    "ShippingOption.freeFrom",
    "PageInfo.startCursor", "PageInfo.endCursor",
    # What is refused by itself when it is too long; the product beside it is not.
    "Product.images", "Product.reviews",
}  # fmt: skip


def nullable(kind: GraphQLType) -> bool:
    """Return whether a value of the type, or an item of it, may be null."""
    if not isinstance(kind, GraphQLNonNull):
        return True
    inner = kind.of_type
    return isinstance(inner, GraphQLList) and nullable(inner.of_type)


def test_each_nullable_output_has_a_reason() -> None:
    found = set()
    for name, kind in schema().type_map.items():
        # A query or mutation that fails is null, and the others have their values.
        if name in ("Query", "Mutation") or name.startswith("__"):
            continue
        if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
            found |= {
                f"{name}.{field}"
                for field, one in kind.fields.items()
                if nullable(one.type)
                and field != "clientMutationId"
                and field not in FIELDS.get(name, {})
            }
    assert found == NULLABLE

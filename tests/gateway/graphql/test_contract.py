"""The contract of the storefront: types, fields, inputs, and introspection of deprecations."""

import pytest

from gateway.graphql.schema import schema
from tests.support.shop import Shop

FIELDS = {
    "ShoppingCart": {
        "id": "ID!", "products": "[ShoppingCartProduct]", "totalPrice": "Float",
        "totalQuantity": "Int", "coupon": "Coupon", "totalShipping": "Float",
        "shippingOptions": "[ShippingOption]", "totalDiscount": "Float",
    },
    "Query": {"shoppingCart": "ShoppingCart", "client": "Client"},
    "CreateReviewMutationPayload": {"review": "Review"},
    "ClientSignupMutationPayload": {"token": "String", "user": "AuthUser"},
    "ClientLoginMutationPayload": {"token": "String", "user": "AuthUser"},
    "ClientIdpLoginMutationPayload": {"token": "String", "user": "AuthUser"},
    "ClientIdpSignupMutationPayload": {"token": "String", "user": "AuthUser"},
    "SaveDiscountModalUserDataMutationPayload": {"couponCode": "String", "success": "Boolean"},
    "LeadMutationPayload": {"success": "Boolean"},
}  # fmt: skip
"""The types that the contract writes down."""
NAMED = {
    "ShoppingCartProduct": {
        "id": "ID", "productId": "ID", "title": "String", "price": "Float", "quantity": "Int",
        "images": "[Image]",
    },
    "Image": {"url": "String"},
    "Coupon": {"code": "String", "discountPercentage": "Float", "discountValue": "Float"},
    "ShippingOption": {"type": "String", "name": "String", "price": "Float", "deadline": "Int"},
    "AuthUser": {"id": "ID", "name": "String", "email": "String"},
    "Review": {"id": "ID", "stars": "Int", "text": "String", "createdAt": "String"},
    "Client": {"store": "Store"},
    "Store": {"name": "String"},
    "Product": {"title": "String", "categories": "[Category]", "groups": "[Category]"},
}  # fmt: skip
"""Fields whose types the contract leaves open: what they hold, null or not."""
INPUTS = {
    "CreateReview": {
        "hostname": "String!", "productId": "ID!", "stars": "Int!", "text": "String!",
    },
    "ClientSignup": {
        "hostname": "String!", "name": "String!", "email": "String!", "password": "String!",
    },
    "ClientLogin": {"hostname": "String!", "email": "String!", "password": "String!"},
    "ClientIdpLogin": {"hostname": "String!", "token": "String!"},
    "ClientIdpSignup": {"hostname": "String!", "token": "String!"},
    "SaveDiscountModalUserData": {
        "hostname": "String!", "discountModalId": "ID!", "name": "String", "email": "String!",
        "phone": "String",
    },
    "Lead": {
        "hostname": "String!", "name": "String", "email": "String!", "phone": "String",
        "source": "String",
    },
    "EbookLead": {"hostname": "String!"},
}  # fmt: skip


@pytest.mark.parametrize("kind", FIELDS)
def test_fields_have_the_types_of_the_contract(kind: str) -> None:
    fields = getattr(schema().type_map[kind], "fields")  # noqa: B009 - of object types alone
    assert {name: str(fields[name].type) for name in FIELDS[kind]} == FIELDS[kind]


@pytest.mark.parametrize("kind", NAMED)
def test_fields_without_a_type_in_the_contract_hold_what_it_means(kind: str) -> None:
    fields = getattr(schema().type_map[kind], "fields")  # noqa: B009 - of object types alone
    assert {name: str(fields[name].type).replace("!", "") for name in NAMED[kind]} == NAMED[kind]


@pytest.mark.parametrize("mutation", INPUTS)
def test_a_mutation_takes_one_input_of_its_own_type(mutation: str) -> None:
    made = schema()
    assert made.mutation_type is not None
    field = made.mutation_type.fields[mutation[0].lower() + mutation[1:]]
    assert {name: str(a.type) for name, a in field.args.items()} == {
        "input": f"{mutation}MutationInput!"
    }
    fields = getattr(made.type_map[f"{mutation}MutationInput"], "fields")  # noqa: B009 - as above
    assert {name: str(fields[name].type) for name in INPUTS[mutation]} == INPUTS[mutation]
    required = {name for name, found in fields.items() if str(found.type).endswith("!")}
    assert required - INPUTS[mutation].keys() <= {"email", "ebookId"}


def test_every_operation_names_its_store() -> None:
    made = schema()
    assert made.query_type is not None
    without = {
        name for name, field in made.query_type.fields.items()
        if str(field.args["hostname"].type if "hostname" in field.args else "") != "String!"
    }  # fmt: skip
    assert without == {"node", "nodes"}


async def test_introspection_shows_deprecated_fields(shop: Shop) -> None:
    answer = await shop.browser().send(
        """query ($name: String!) { __type(name: $name) {
             fields(includeDeprecated: true) { name isDeprecated deprecationReason } } }""",
        {"name": "Product"},
    )
    fields = {one["name"]: one for one in answer.data["__type"]["fields"]}
    assert fields["groups"] == {
        "name": "groups", "isDeprecated": True, "deprecationReason": "Use categories",
    }  # fmt: skip
    assert fields["categories"]["isDeprecated"] is False

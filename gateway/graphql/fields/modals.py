"""Resolves discount modals."""

from collections.abc import Mapping

from gateway.domain.storefront.campaigns import modals
from gateway.graphql.fields.cart import percent
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.record import Record
from gateway.records.values import global_ids
from gateway.records.values.global_ids import global_id

CODES = 3
"""Random codes; the write takes the first one that is free."""


async def discount_modal(visit: RequestContext, args: Args) -> Record | None:
    visitor = await visit.visitor(args["hostname"])
    modal_id = args.get("id")
    if modal_id is not None:
        modal_id = global_ids.record_id(modal_id, "DiscountModal", "id", plain=True)
    return await visit.read(modals.shown, visitor, modal_id)


async def save_user_data(visit: RequestContext, sent: Args) -> Args:
    with visit.form():
        visitor = await visit.visitor(sent["hostname"])
        modal_id = global_ids.record_id(
            sent["discountModalId"], "DiscountModal", "discountModalId", plain=True
        )
        random = [visit.token(modals.CODE_BYTES) for _ in range(CODES)]
        code = await visit.write(modals.save_user_data, visitor, modal_id, sent, random)
    return {"couponCode": code, "success": True}


QUERIES: Mapping[str, Resolver] = {"discountModal": discount_modal}
MUTATIONS: Mapping[str, Resolver] = {"saveDiscountModalUserData": save_user_data}
NODES = {"DiscountModal": modals.public}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "DiscountModal": {
        "id": lambda modal, visit, args: global_id("DiscountModal", modal.id),
        "title": lambda modal, visit, args: modal["title"],
        "discountPercentage": lambda modal, visit, args: percent(modal["discount_percentage"]),
        "discountValue": lambda modal, visit, args: modal["discount_value"],
        "validDays": lambda modal, visit, args: modal["valid_days"],
    }
}

"""Resolves leads and e-books."""

from collections.abc import Mapping

from gateway.domain.storefront.campaigns import leads
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.values import global_ids


async def lead(visit: RequestContext, sent: Args) -> Args:
    with visit.form():
        visitor = await visit.visitor(sent["hostname"])
        await visit.write(leads.lead, visitor, sent)
    return {"success": True}


async def ebook_lead(visit: RequestContext, sent: Args) -> Args:
    with visit.form():
        visitor = await visit.visitor(sent["hostname"])
        ebook_id = global_ids.record_id(sent["ebookId"], "Ebook", "ebookId", plain=True)
        url = await visit.write(leads.ebook_lead, visitor, sent, ebook_id)
    return {"success": True, "downloadUrl": url}


QUERIES: Mapping[str, Resolver] = {}
MUTATIONS: Mapping[str, Resolver] = {"lead": lead, "ebookLead": ebook_lead}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {}

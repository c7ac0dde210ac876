"""Reads what is stored about a person beside the records: coupons, mails, events, audit entries."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.storefront.campaigns.modals import ISSUING
from gateway.records.audit import Actor
from gateway.records.values import dates, emails
from outbox.database.transaction import Database, Row, Tx
from outbox.queue.upkeep import personal_export

PAGE = 50
EVENTS = 20
"""Events that one transaction reads; each has a body."""
MOST = 1_000
"""Rows of one kind that belong to one account or contact, such as mails."""

_MAILS = """
select order_id, document_id, kind, created_at, attempts from queued_mails
where owner_id = $1 and contact_id = $2 order by created_at limit $3
"""
_COUPONS = f"""
select code, modal_id from modal_coupons where modal_id in {ISSUING} and holder = $2
order by id limit $3
"""
_AUDIT = """
select id, actor, action, resource, record_id, fields, request_id from audit
where record_id = $1 and owner_id = $2 and id > $3 order by id limit $4
"""


async def rows(tx: Tx, sql: str, *args: Any) -> list[Row]:
    """Return the rows of a query."""
    return await tx.all(sql, *args)


async def coupons(db: Database, actor: Actor, person: Person) -> AsyncGenerator[Any, None]:
    for email in person.emails:
        for holder in dict.fromkeys(emails.holders(email)):
            for row in await db.read(rows, _COUPONS, actor.owner_id, holder, MOST):
                yield {"code": row["code"], "discountModalId": row["modal_id"]}


async def mails(db: Database, actor: Actor, person: Person) -> AsyncGenerator[Any, None]:
    for contact_id in person.contacts:
        for row in await db.read(rows, _MAILS, actor.owner_id, contact_id, MOST):
            of = "orderId" if row["document_id"] is None else "documentId"
            yield {
                of: row["order_id"] or row["document_id"],
                "kind": row["kind"],
                "createdAt": dates.show(row["created_at"]),
                "attempts": row["attempts"],
            }


async def events(db: Database, actor: Actor, ids: Sequence[str]) -> AsyncGenerator[Any, None]:
    """Yield the events of records with their bodies, and what became of their deliveries."""
    for record_id in ids:
        seq = 0
        while page := await db.read(personal_export.events, actor.owner_id, record_id, seq, EVENTS):
            deliveries = await db.read(personal_export.deliveries, [row["id"] for row in page])
            for row in page:
                yield _event(
                    row, [delivery for delivery in deliveries if delivery["event_id"] == row["id"]]
                )
            seq = int(page[-1]["seq"])
            if len(page) < EVENTS:
                break


def _event(row: Row, deliveries: Sequence[Row]) -> dict[str, Any]:
    return {
        "id": row["id"], "event": row["name"], "recordId": row["record_id"],
        "occurredAt": dates.show(row["occurred_at"]),
        "body": None if row["body"] is None else bytes(row["body"]).decode("utf-8", "replace"),
        "deliveries": [
            {
                "id": delivery["id"], "webhookId": delivery["webhook_id"],
                "state": delivery["state"],
                "attempts": delivery["attempts"], "createdAt": dates.show(delivery["created_at"]),
                "lastOutcome": delivery["last_outcome"], "lastStatus": delivery["last_status"],
            }
            for delivery in deliveries
        ],
    }  # fmt: skip


async def audit(db: Database, actor: Actor, ids: Sequence[str]) -> AsyncGenerator[Any, None]:
    for record_id in ids:
        after = ""
        while page := await db.read(rows, _AUDIT, record_id, actor.owner_id, after, PAGE):
            for row in page:
                yield {
                    "id": row["id"], "actor": row["actor"], "action": row["action"],
                    "resource": row["resource"], "recordId": row["record_id"],
                    "fields": row["fields"].split(",") if row["fields"] else [],
                }  # fmt: skip
            after = page[-1]["id"]
            if len(page) < PAGE:
                break

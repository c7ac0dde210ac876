"""Writes the mails that bring a quote or an invoice: a link, the amount, and the PDF file."""

from collections.abc import Mapping
from functools import partial

from gateway import texts
from gateway.domain import queued_mail
from gateway.domain.accounts import users
from gateway.domain.queued_mail import Attachment, Letter, Post, QueuedMail, line
from gateway.domain.sales import document_links, sheet_pdf, sheets
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from outbox.database.transaction import Tx

SENT: Mapping[str, Resource] = {
    f"{noun}_sent": resource for noun, resource in sheets.DOCUMENTS.items()
}
ENDED = ("canceled", "rejected", "expired")
"""States of a document that nobody should get any more."""
LONGEST_NAME = 60


async def letter(tx: Tx, mail: QueuedMail, post: Post) -> Letter | None:
    """Write a mail, with a new link; return None when nobody should get it any more."""
    user = await users.one(tx, mail.owner_id)
    resource = SENT[mail.kind]
    gone = user is None or user["disabled_at"] is not None
    if user is None or gone or mail.document_id is None or mail.address is None or not post.site:
        return None
    actor = Actor(mail.owner_id, "system", cause="mail", zone=user["timezone"])
    try:
        # Its customer may change meanwhile, which drops the mail and ends the links.
        document = await actions.own(tx, actor, resource, mail.document_id, "read", lock=True)
    except Refusal:
        return None
    if not await queued_mail.waits(tx, mail):
        return None
    if document["status"] in ENDED:
        return None
    token = post.mark(post.token, mail.owner_id)
    await document_links.add(tx, mail.owner_id, resource.noun, document.id, token)
    source = await sheets.read(tx, actor, resource, document.id)
    words = texts.of(user["language"] or texts.HOME)
    sheet = sheets.written(source, words)
    sender = line(sheet.sender)[:LONGEST_NAME]
    parts = [
        words(f"document_mail.{resource.noun}.text", sender=sender, number=sheet.number),
        "\n".join(f"{label}: {value}" for label, value in (*sheet.dates, sheet.amounts[-1])),
        words(f"document_mail.{resource.noun}.link"),
        f"{post.site}{document_links.PATH}?token={token}",
        *([words("document_mail.pix"), sheet.pix] if sheet.pix else []),
        "-- \n" + "\n".join(map(line, (sheet.sender, *sheet.sender_lines))),
    ]
    return Letter(
        mail, mail.address, sender, line(f"{sheet.title} - {sender}"), "\n\n".join(parts) + "\n",
        attachment=Attachment(f"{sheet.number}.pdf", partial(sheet_pdf.pdf_of, sheet)),
    )  # fmt: skip

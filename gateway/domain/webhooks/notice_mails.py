"""Writes the mails to the owners of webhooks that began to fail, were disabled or have recovered.

A mail is written when it is sent, with the data of that time. The notices wait in the engine's
table; an owner or a webhook that is gone by then gets none.
"""

from gateway.domain import queued_mail
from gateway.domain.accounts import users
from gateway.domain.queued_mail import Letter, Queued
from gateway.records.values import dates
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.queue.state import notices
from outbox.queue.state.notices import Kind
from outbox.queue.state.operational import bare

LONGEST_URL = 200
SUBJECTS: dict[Kind, str] = {
    "failing": "Webhook com falhas / Webhook failing",
    "disabled": "Webhook desativado / Webhook disabled",
    "recovered": "Webhook recuperado / Webhook recovered",
}
TEXTS: dict[Kind, str] = {
    "failing": """\
O receptor deste webhook falhou várias vezes seguidas. Nenhum evento se perde: as entregas esperam,
e de tempos em tempos uma delas é tentada. Corrija o receptor; quando ele responder 2xx, as entregas
continuam. Depois de cinco dias de falhas o webhook é desativado.

The receiver of this webhook failed many times in a row. No event is lost: the deliveries wait, and
now and then one of them is tried. Correct the receiver; when it answers 2xx, deliveries go on.
After five days of failures the webhook is disabled.
""",
    "disabled": """\
Este webhook foi desativado. Os eventos ficam guardados até que você o ative no console, onde
escolhe quais deles serão enviados. Corrija antes o endereço ou o receptor.

This webhook was disabled. Its events are parked until you activate it in the console, where you
choose which of them are sent. Correct its address or its receiver first.
""",
    "recovered": """\
O receptor deste webhook voltou a responder. As entregas que esperavam estão sendo enviadas.

The receiver of this webhook responds again. The deliveries that waited are being sent.
""",
}
FACTS = """
{link}
URL: {url}
Motivo / reason: {reason}
Hora / time: {time}
"""


async def next_letter(tx: Tx, service: str, site: str) -> Letter | None:
    """Start an attempt at the notice that is due first; return None when none is due.

    `site` is the address of the console, empty when it is not known.
    """
    while (notice := await notices.take(tx)) is not None:
        user = await users.one(tx, notice.owner_id)
        webhook = await webhooks.one(tx, notice.webhook_id)
        if user is None or user["disabled_at"] is not None or webhook is None:
            await notices.sent(tx, notice.id)
            continue
        name = queued_mail.line(service)
        facts = FACTS.format(
            url=queued_mail.line(bare(webhook.url))[:LONGEST_URL],
            reason=queued_mail.line(notice.reason),
            time=dates.show(notice.created_at),
            link=f"{site}/console/webhooks/{webhook.id}\n" if site else "",
        )
        return Letter(
            notice, user["email"], name, f"{SUBJECTS[notice.kind]} - {name}",
            f"{TEXTS[notice.kind]}{facts}",
        )  # fmt: skip
    return None


async def sent(tx: Tx, mail: Queued) -> None:
    """End a notice that was sent."""
    await notices.sent(tx, mail.id)


async def failed(tx: Tx, mail: Queued, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else queued_mail.wait_after(mail.attempts)
    await notices.failed(tx, mail.id, mail.attempts, error, wait)
    return wait is not None

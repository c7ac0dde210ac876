"""The console of a webhook that keeps the order of each record: the stuck heads, and a skip."""

from __future__ import annotations

from gateway.server.app_keys import KEYRING
from outbox.queue.order import record_lines
from tests.support.console import Guest
from tests.support.drain import add_webhook, rows
from tests.support.lines import URL, settled, taken, written

HOUR = 3_600_000_000


async def stuck(maria: Guest) -> tuple[str, str]:
    """Return a webhook of hers with one stuck record, and the head."""
    db = maria.site.db
    [row] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    owner = row["id"]
    ring = maria.site.app[KEYRING]
    webhook_id, _ = await add_webhook(db, ring, URL, owner=owner, ordered=True)
    await written(db, "record-1", "record-1", "record-1", "record-2", owner=owner)
    await settled(db, await taken(db, webhook_id), "ready", HOUR)
    [line] = (await db.read(record_lines.of_webhook, webhook_id)).stuck
    return webhook_id, line.delivery_id


async def test_the_page_of_a_webhook_shows_what_holds_up_a_record(maria: Guest) -> None:
    webhook_id, head = await stuck(maria)
    page = await maria.get(f"/console/webhooks/{webhook_id}")
    assert f'action="/console/deliveries/{head}/now"' in page.html
    assert f'href="/console/deliveries/{head}"' in page.html
    assert f'action="/console/deliveries/{head}/skip"' in page.html
    assert "Try it now, or skip it" in page.html.partition('data-testid="resting"')[2][:200]
    section = page.html.split('id="lines"')[1].split("</section>")[0]
    assert "record-1" in section
    assert "record-2" not in section
    assert "in 59 min" in section or "in 1 h" in section
    shown = await maria.get(f"/console/webhooks/{webhook_id}/deliveries?state=held")
    assert shown.html.count("record-1") == 2


async def test_a_head_is_skipped_from_the_page(maria: Guest) -> None:
    webhook_id, head = await stuck(maria)
    here = f"/console/webhooks/{webhook_id}"
    done = await maria.submit(f"/console/deliveries/{head}/skip", at=here)
    assert done.path == f"{here}?done=skipped"
    assert "Each record is in order" in done.html
    skipped = await maria.get(f"/console/deliveries/{head}")
    assert "skipped" in skipped.html
    again = await maria.submit(f"/console/deliveries/{head}/skip", at=here)
    assert again.status == 409
    assert "holds up no others any more" in again.html


async def test_deliveries_of_a_line_lead_to_one_another(maria: Guest) -> None:
    _, head = await stuck(maria)
    page = await maria.get(f"/console/deliveries/{head}")
    assert "2 later deliveries of this record" in page.html
    [follower, _] = await maria.site.db.read(
        rows, "select id from deliveries where state = 'held' order by seq"
    )
    held = await maria.get(f"/console/deliveries/{follower['id']}")
    assert f'id="to-head" href="/console/deliveries/{head}"' in held.html
    assert "/skip" not in held.html

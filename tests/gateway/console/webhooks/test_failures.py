"""What the page of a webhook says while it fails, and while something holds all its deliveries."""

from __future__ import annotations

import pytest

from gateway.server.app_keys import KEYRING
from tests.support.console import Guest, Seen
from tests.support.drain import add_webhook, rows, run
from tests.support.lines import URL, fanned, settled, taken, written

HOUR = 3_600_000_000
LATER = "due_now() + 3600000000"
ON_WEBHOOKS = "update webhooks set {} where id = $1"
ON_LANES = "update lanes set {} where webhook_id = $1"


async def failing(maria: Guest) -> tuple[str, str]:
    """Return a webhook of hers and its delivery that failed; three others wait."""
    db = maria.site.db
    [row] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    ring = maria.site.app[KEYRING]
    webhook_id, _ = await add_webhook(db, ring, URL, owner=row["id"])
    await written(db, "record-1", owner=row["id"])
    [claimed] = await taken(db, webhook_id)
    await settled(db, [claimed], "ready", HOUR)
    await written(db, "record-2", "record-3", "record-4", owner=row["id"])
    return webhook_id, claimed.id


def section(page: Seen) -> str:
    return page.html.partition('data-testid="failures"')[2].partition("</section>")[0]


async def test_the_last_failed_attempts_and_the_next_one_are_shown(maria: Guest) -> None:
    webhook_id, failed = await failing(maria)
    here = f"/console/webhooks/{webhook_id}"
    shown = section(await maria.get(here))
    assert f'href="/console/deliveries/{failed}#attempt-1"' in shown
    assert "timeout" in shown
    assert "Next attempt:" in shown
    assert "record-2" in shown.partition('data-testid="next"')[2]
    # Ten failures open the circuit, and then the page is about what failed alone.
    db = maria.site.db
    await db.write(run, ON_WEBHOOKS.format("failures = 10, circuit = 'open'"), webhook_id)
    await db.write(run, ON_LANES.format(f"probe_at = {LATER}"), webhook_id)
    page = await maria.get(here)
    assert "in 1 h" in section(page).partition("Next probe:")[2][:200]
    assert "Latest deliveries</h2>" not in page.html.partition('class="stats"')[2]
    # `With failures` finds what failed and waits, and what was given up.
    await db.write(run, "update deliveries set state = 'dead' where record_id = 'record-3'")
    for path in (f"{here}/deliveries", "/console/deliveries"):
        html = (await maria.get(f"{path}?state=failures")).html
        assert ["record-1" in html, "record-2" in html, "record-3" in html] == [True, False, True]
    assert failed in (await maria.get(f"{here}/deliveries?state=retrying")).html


@pytest.mark.parametrize(
    ("change", "says", "leads"),
    [
        (ON_WEBHOOKS.format("state = 'paused'"), "Paused: no events are sent", "/activate"),
        (ON_WEBHOOKS.format("state = 'disabled', disabled_reason = 'failing'"),
         "check it with the doctor", "/activate"),
        (ON_WEBHOOKS.format("state = 'disabled', disabled_reason = 'gone'"),
         "answer with a 2xx status", "/activate"),
        (ON_LANES.format(f"wait_until = {LATER}"), "asked for a pause", ""),
        (ON_LANES.format(f"wait_until = {LATER}, rate_until = {LATER}"),
         "If your receiver takes more, raise the limit.", "/edit#concurrency"),
        (ON_LANES.format(f"probe_at = {LATER}"), "send a test event: if it", "#test-title"),
    ],
)  # fmt: skip
async def test_a_webhook_says_why_nothing_is_sent_and_what_to_do(
    maria: Guest, change: str, says: str, leads: str
) -> None:
    webhook_id, _ = await failing(maria)
    db = maria.site.db
    await db.write(run, change, webhook_id)
    if "probe_at" in change:
        await db.write(run, ON_WEBHOOKS.format("circuit = 'open'"), webhook_id)
    await fanned(db)
    page = await maria.get(f"/console/webhooks/{webhook_id}")
    notes = page.html.partition('id="webhook-health"')[2].partition('class="stats"')[0]
    assert says in notes
    assert f'{leads}"' in notes

"""Deliveries steered in the console: tried now, cancelled, and replayed as a selection."""

import re
from typing import Any

from outbox.database.transaction import Database
from outbox.queue.state import lanes
from tests.gateway.cli.test_replay import run
from tests.support.console import Guest
from tests.support.drain import make_many, rows
from tests.support.site import Site

HOUR = 3_600_000_000


async def waiting(site: Site, maria: Guest, count: int, *states: str) -> tuple[str, list[str]]:
    """A webhook with deliveries that wait for a retry, or are in these states."""
    webhook = await maria.webhook("http://127.0.0.1:9999/hook", "contact.created")
    owner = (await site.db.read(rows, "select owner_id from webhooks where id = $1", webhook.id))[0]
    ids = await site.db.write(make_many, count, owner["owner_id"])
    await site.db.write(run, "update events set seq = pos where seq is null")
    now = site.db.clock.wall()
    for n, event_id in enumerate(ids):
        state = states[n] if n < len(states) else "ready"
        await site.db.write(
            run,
            "insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry,"
            " next_at, tries, attempts, record_id, seq, created_at, finished_at)"
            " select $1, owner_id, $2, id, 'event', $3, $4, due_now() + $5, 1, 1, 'r', $6, $7, $8"
            " from webhooks where id = $9",
            f"{n:024x}", event_id, state, True, HOUR, n, now,
            now if state != "ready" else None, webhook.id,
        )  # fmt: skip
    await site.db.write(lanes.rest, [webhook.id])
    return webhook.id, [f"{n:024x}" for n in range(count)]


async def states(db: Database, webhook_id: str) -> dict[str, str]:
    deliveries = await db.read(
        rows, "select id, state, origin from deliveries where webhook_id = $1", webhook_id
    )
    return {row["id"]: row["state"] for row in deliveries}


async def test_a_delivery_is_tried_now(console: Site, maria: Guest) -> None:
    _, [one] = await waiting(console, maria, 1)
    where = f"/console/deliveries/{one}"
    page = await maria.get(where)
    assert f'action="{where}/now"' in page.html
    done = await maria.submit(f"{where}/now", at=where)
    assert "The delivery is next." in done.html
    [row] = await console.db.read(rows, "select next_at <= due_now() as due from deliveries")
    assert row["due"]


async def test_a_pause_and_a_limit_are_told(console: Site, maria: Guest) -> None:
    webhook_id, [one] = await waiting(console, maria, 1)
    where, hook = f"/console/deliveries/{one}", f"/console/webhooks/{webhook_id}"
    pages = (where, hook, f"{hook}/deliveries", "/console/deliveries")
    pause = "update lanes set wait_until = due_now() + $1"
    await console.db.write(run, "update deliveries set next_at = 0")
    await console.db.write(run, pause, 2 * HOUR)
    for page in pages:
        html = (await maria.get(page)).html
        assert "the receiver asked for a pause" in html.lower(), page
        assert "due now" not in html.lower(), page
    done = await maria.submit(f"{where}/now", at=where)
    assert "The delivery is next." in done.html
    assert "asked for a pause" not in done.html
    # The limit of the owner holds it all the same, and a test event, too.
    await console.db.write(run, pause + ", rate = 1, rate_until = due_now() + $1", HOUR)
    done = await maria.submit(f"{where}/now", at=where)
    assert "but your limit of requests per second holds it" in done.html
    assert "your limit of requests per second</span>" in done.html
    done = await maria.submit(f"{hook}/test", at=hook, event="contact.created")
    assert "Your limit of requests per second holds it" in done.html
    assert "Your limit of requests per second holds the next request." in done.html


async def test_a_corrected_url_is_tried_at_once(console: Site, maria: Guest) -> None:
    webhook_id, [_] = await waiting(console, maria, 1)
    await console.db.write(
        run, "update webhooks set circuit = 'open', failures = 10, failing_since = 1"
    )
    await console.db.write(run, "update lanes set probe_at = due_now() + $1", HOUR)
    where = f"/console/webhooks/{webhook_id}"
    fields: dict[str, Any] = {"events": "contact.created", "at": f"{where}/edit"}
    due = "select next_at <= due_now() as due from deliveries"
    # Another setting changes nothing of this.
    await maria.submit(where, url="http://127.0.0.1:9999/hook", description="new", **fields)
    assert not (await console.db.read(rows, due))[0]["due"]
    page = await maria.submit(where, url="http://127.0.0.1:9998/hook", **fields)
    assert page.status == 200
    assert (await console.db.read(rows, due))[0]["due"]
    [row] = await console.db.read(rows, "select * from webhooks where id = $1", webhook_id)
    assert (row["circuit"], row["failures"], row["failing_since"]) == ("closed", 0, None)


async def test_a_delivery_is_cancelled_once(console: Site, maria: Guest) -> None:
    webhook_id, [one] = await waiting(console, maria, 1)
    where = f"/console/deliveries/{one}"
    done = await maria.submit(f"{where}/cancel", at=where)
    assert "Delivery canceled." in done.html
    assert await states(console.db, webhook_id) == {one: "cancelled"}
    assert f'action="{where}/cancel"' not in done.html
    again = await maria.submit(f"{where}/cancel", at="/console/webhooks/new")
    assert again.status == 409
    ended = (await maria.submit(f"{where}/now", at="/console/webhooks/new")).html
    assert "has ended; replay it instead" in ended


async def test_a_selection_is_replayed_after_a_question(console: Site, maria: Guest) -> None:
    webhook_id, ids = await waiting(console, maria, 3, "delivered", "exhausted")
    path = f"/console/webhooks/{webhook_id}/deliveries"
    assert "select=1" in (await maria.get(path)).html
    page = await maria.get(f"{path}?select=1")
    assert all(f'name="delivery" value="{one}"' in page.html for one in ids)
    fields: dict[str, Any] = {"delivery": ids, "act": "replay", "back": path}
    for answered in ("", "yes", "1-0", "0-0"):
        asked = await maria.submit(
            "/console/deliveries/selected", at=path + "?select=1", confirmed=answered, **fields
        )
        assert "have accepted 1 of them" in asked.html
        assert "1 of them is not finished" in asked.html
        assert 'name="confirmed" value="1-1"' in asked.html
        assert len(await states(console.db, webhook_id)) == 3
    done = await maria.submit(
        "/console/deliveries/selected", at=path + "?select=1", confirmed="1-1", **fields
    )
    assert "Replays created" in done.html
    assert done.path.startswith(path)
    assert len(await states(console.db, webhook_id)) == 6


async def test_all_or_none(console: Site, maria: Guest) -> None:
    webhook_id, ids = await waiting(console, maria, 2, "exhausted", "exhausted")
    await console.db.write(
        run, "update events set body = null, erased_at = 1 where id = "
        "(select event_id from deliveries where id = $1)", ids[1],
    )  # fmt: skip
    path = f"/console/webhooks/{webhook_id}/deliveries?select=1"
    page = await maria.submit(
        "/console/deliveries/selected", at=path, delivery=ids, act="replay", back=path
    )
    assert page.status == 409
    assert "erased" in page.html
    assert len(await states(console.db, webhook_id)) == 2


async def test_deliveries_of_several_webhooks_are_selected_at_once(
    console: Site, maria: Guest
) -> None:
    one, ids = await waiting(console, maria, 2, "exhausted", "dead")
    webhook = await maria.webhook("http://127.0.0.1:9999/two", "contact.created")
    await console.db.write(
        run, "update deliveries set webhook_id = $2 where id = $1", ids[1], webhook.id
    )
    path = "/console/deliveries?state=failed"
    assert "select=1" in (await maria.get(path)).html
    page = await maria.get(f"{path}&select=1")
    assert all(f'name="delivery" value="{each}"' in page.html for each in ids)
    done = await maria.submit(
        "/console/deliveries/selected", at=path + "&select=1", delivery=ids, act="replay",
        back=path,
    )  # fmt: skip
    assert done.path.startswith(path)
    assert len(await states(console.db, one)) == len(await states(console.db, webhook.id)) == 2


async def test_the_selection_keeps_all_columns_and_needs_no_script(
    console: Site, maria: Guest
) -> None:
    _, ids = await waiting(console, maria, 3)
    listed = (await maria.get("/console/deliveries")).html
    columns = re.findall('<th scope="col"[^>]*>([^<]*)<', listed)
    page = await maria.get("/console/deliveries?select=1")
    assert re.findall('<th scope="col"[^>]*>([^<]*)<', page.html) == ["Select", *columns]
    assert "Webhook" in columns
    every = await maria.get(page.link("Select all on this page"))
    assert every.html.count(" checked") == len(ids)
    assert " checked" not in (await maria.get(page.link("Clear"))).html
    assert every.html.index('class="cap picked"') > every.html.index("</table>")


async def test_the_main_button_is_the_one_that_helps(console: Site, maria: Guest) -> None:
    buttons = ("Replay", None, "Try now", "Replay")
    _, ids = await waiting(console, maria, 4, "dead", "delivered", "ready", "cancelled")
    for one, main in zip(ids, buttons, strict=True):
        html = (await maria.get(f"/console/deliveries/{one}")).html.partition('class="head"')[2]
        head = html.partition("</header>")[0]
        found = re.findall(r'<(?:a role="button"|button type="submit")([^>]*)>([^<]*)<', head)
        strong = [text for attributes, text in found if "outline" not in attributes]
        assert strong == ([main] if main else []), one


async def test_a_selection_is_cancelled(console: Site, maria: Guest) -> None:
    webhook_id, ids = await waiting(console, maria, 3, "delivered")
    path = f"/console/webhooks/{webhook_id}/deliveries?select=1"
    done = await maria.submit(
        "/console/deliveries/selected", at=path, delivery=ids, act="cancel", back=path
    )
    assert "waited are canceled" in done.html
    ends = await states(console.db, webhook_id)
    assert [ends[one] for one in ids] == ["delivered", "cancelled", "cancelled"]


async def test_a_bad_selection_changes_nothing(console: Site, maria: Guest) -> None:
    webhook_id, ids = await waiting(console, maria, 1)
    many = [f"{n:024x}" for n in range(201)]
    path, at = "/console/deliveries/selected", f"/console/webhooks/{webhook_id}"
    for delivery, act, status in (
        ([], "replay", 400), (["x"], "replay", 404), (["f" * 24], "replay", 404),
        (many, "replay", 400), (many, "cancel", 400),
    ):  # fmt: skip
        page = await maria.submit(path, at=at, delivery=delivery, act=act)
        assert page.status == status
    assert await states(console.db, webhook_id) == {ids[0]: "ready"}
    # The way back stays in the console, and is one line.
    for back in ("//evil.example/console/", f"{at}\r\nSet-Cookie: a=b"):
        done = await maria.submit(path, at=at, delivery=ids, act="cancel", back=back, follow=False)
        assert done.headers["Location"].startswith("/console/webhooks?")
        assert "Set-Cookie" not in done.headers


async def test_a_replay_of_a_delivered_or_waiting_delivery_needs_confirmation(
    console: Site, maria: Guest
) -> None:
    """The server requires the confirmation: a form without it gets the question, not a replay."""
    webhook_id, ids = await waiting(console, maria, 3, "delivered", "ready", "gone")
    for one, said, right, wrong in (
        (ids[0], "The receiver accepted it", "delivered", "waiting"),
        (ids[1], "will still be sent", "waiting", "delivered"),
    ):
        where = f"/console/deliveries/{one}"
        assert f'href="{where}/replay"' in (await maria.get(where)).html
        before = len(await states(console.db, webhook_id))
        for said_yes in ([], [wrong], ["yes"]):
            asked = await maria.submit(f"{where}/replay", at="/console/keys", confirmed=said_yes)
            assert (asked.status, asked.path) == (200, f"{where}/replay")
            assert said in asked.html
            assert f'name="confirmed" value="{right}"' in asked.html
        assert len(await states(console.db, webhook_id)) == before
        done = await maria.submit(f"{where}/replay", confirmed=right)
        assert "?done=replay" in done.path
        assert len(await states(console.db, webhook_id)) == before + 1
    # A failed delivery is replayed without a question.
    where = f"/console/deliveries/{ids[2]}"
    assert "?done=replay" in (await maria.submit(f"{where}/replay", at=where)).path

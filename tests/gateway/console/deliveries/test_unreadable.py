"""What the console shows when a key is lost: the reason and the remedy, and no internal error."""

from __future__ import annotations

import pytest

from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.gateway.cli.test_replay import run
from tests.gateway.console.webhooks.test_doctor import delivering
from tests.support.console import Guest
from tests.support.drain import inbox, rows
from tests.support.waiting import until

LIST = "/console/webhooks"
WHY = "select unreadable from webhooks"
WALL = 1_760_000_000_000_000


async def seal_elsewhere(who: Guest, webhook_id: str, column: str, plain: bytes) -> str:
    """Replace a value of a webhook by one that a lost key has sealed; return the key's id."""
    lost = parse_keys(new_key_line(Ids(), WALL), Ids(), "the lost keys")
    sealed = lost.seal(plain, webhook_id)
    await who.site.db.write(
        run, f"update webhooks set {column} = $2, version = version + 1 where id = $1", webhook_id,
        sealed,
    )  # fmt: skip
    return lost.newest


async def test_nothing_of_a_lost_secret_is_an_internal_error(maria: Guest) -> None:
    made = await maria.webhook("https://hooks.example.com/")
    lost = await seal_elsewhere(maria, made.id, "secret", b"whsec_YWJjZA==")
    for page in ("", "/edit", "/rotate", "/guide", "/deliveries"):
        assert (await maria.get(f"{LIST}/{made.id}{page}")).status < 500, page
    checked = await maria.submit(
        f"{LIST}/{made.id}/guide", at=f"{LIST}/{made.id}/guide", headers="webhook-id: x", body="{}"
    )
    assert checked.status == 409
    assert lost in checked.html


async def test_the_page_of_a_webhook_says_why_its_deliveries_wait(db: Database) -> None:
    async with inbox() as box, delivering(db) as (site, maria):
        made = await maria.webhook(box.url)
        lost = await seal_elsewhere(maria, made.id, "secret", b"whsec_YWJjZA==")
        path = f"{LIST}/{made.id}"

        async def unreadable() -> bool:
            return bool((await site.db.read(rows, WHY))[0]["unreadable"])

        await maria.submit(f"{path}/test", at=path, event="contact.created")
        await until(unreadable)
        page = await maria.get(path)
        assert "Deliveries wait: the webhook&#39;s secret cannot be decrypted" in page.html
        assert f"the key {lost} is missing from the key file" in page.html
        # The remedy that the page names, when the key is lost for ever.
        await maria.submit(f"{path}/rotate", at=f"{path}/rotate")
        await maria.submit(f"{path}/rotate/activate", at=f"{path}/rotate")
        await box.until(1)
        assert site.app[KEYRING].newest != lost
    assert [got.headers["X-Webhook-Test"] for got in box.got] == ["1"]


@pytest.fixture(autouse=True)
def _tries_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.queue.state.policy.UNREADABLE_WAIT", 200_000)

"""The pages that rotate a webhook's signing secret."""

import re

from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Row, Tx
from tests.support.console import Guest

URL = "https://hooks.example.com/crm"
ENDS_AT_ONCE = "When you activate another secret before that, it stops signing."


async def row_of(tx: Tx) -> Row | None:
    return await tx.one("select * from webhooks")


async def opened(maria: Guest, column: str) -> str | None:
    row = await maria.site.db.read(row_of)
    assert row is not None
    if row[column] is None:
        return None
    return maria.site.app[KEYRING].open(bytes(row[column]), row["id"]).decode()


async def test_a_secret_is_rotated_step_by_step(maria: Guest) -> None:
    page = await maria.webhook(URL)
    old = page.test_id("webhook-secret")
    here = f"/console/webhooks/{page.id}"
    assert page.link("Rotate") == f"{here}/rotate"
    staged = await maria.submit(f"{here}/rotate", at=f"{here}/rotate")
    new = staged.test_id("webhook-secret")
    assert (staged.status, staged.path) == (200, f"{here}/rotate?done=staged")
    assert new is not None
    assert new != old
    assert await opened(maria, "secret") == old
    assert await opened(maria, "staged_secret") == new
    again = await maria.get(f"{here}/rotate")
    assert again.test_id("webhook-secret") is None
    assert new not in again.html
    # The page of the webhook reminds its owner.
    assert "does not use it until you activate it" in (await maria.get(here)).html
    done = await maria.submit(f"{here}/rotate/activate", at=f"{here}/rotate")
    assert done.path == f"{here}?done=rotated"
    assert re.search(r"still signs webhook-signature until \w+day \d\d:\d\d\.", done.html)
    assert (await opened(maria, "secret"), await opened(maria, "old_secret")) == (new, old)
    # Where the next one is made and where it is activated.
    assert ENDS_AT_ONCE in (await maria.get(f"{here}/rotate")).html
    staged = await maria.submit(f"{here}/rotate", at=f"{here}/rotate")
    assert ENDS_AT_ONCE in staged.html


async def test_a_rotation_is_cancelled(maria: Guest) -> None:
    page = await maria.webhook(URL)
    old = page.test_id("webhook-secret")
    here = f"/console/webhooks/{page.id}"
    new = (await maria.submit(f"{here}/rotate", at=f"{here}/rotate")).test_id("webhook-secret")
    # A second click does not replace the secret that was shown.
    again = await maria.submit(f"{here}/rotate", at=f"{here}/rotate")
    assert (again.status, "already staged" in again.html) == (409, True)
    assert await opened(maria, "staged_secret") == new
    done = await maria.submit(f"{here}/rotate/cancel", at=f"{here}/rotate")
    assert done.path == f"{here}?done=unstaged"
    assert await opened(maria, "staged_secret") is None
    assert await opened(maria, "secret") == old
    for verb in ("activate", "cancel"):
        refused = await maria.submit(f"{here}/rotate/{verb}", at=f"{here}/rotate")
        assert refused.status == 409

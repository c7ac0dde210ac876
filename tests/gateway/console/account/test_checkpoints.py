"""The page of checkpoints: made by a button, listed, and saved as a file that verifies."""

from __future__ import annotations

from outbox.database.transaction import Tx
from outbox.queue.proof import witness
from tests.support.console import Guest

PAGE = "/console/checkpoints"


async def grow(tx: Tx) -> None:
    await tx.run("update lanes set chain_place = chain_place + 1, chain_digest = $1", "a" * 64)


async def test_one_is_made_listed_and_saved_as_a_file_that_verifies(
    maria: Guest, rui: Guest
) -> None:
    assert "No checkpoints yet" in (await maria.get(PAGE)).html
    webhook = await maria.webhook("http://127.0.0.1:9999/hook")
    nothing = await maria.submit(PAGE)
    assert "so none was made" in nothing.html
    await maria.site.db.write(grow)
    made = await maria.submit(PAGE)
    assert "Checkpoint made." in made.html
    assert made.html.count('data-testid="checkpoint"') == 1
    path = made.link("Download no. 1")
    file = await maria.get(path)
    assert 'filename="checkpoint-1.txt"' in file.headers["Content-Disposition"]
    keys = witness.public_keys((await maria.get("/.well-known/carteiro/keys")).html)
    assert list(witness.read(file.html, keys).ends) == [webhook.id]
    assert (await rui.get(path)).status == 404
    assert 'data-testid="checkpoint"' not in (await rui.get(PAGE)).html
    for number in ("2", "0", "9" * 18, "x"):
        assert (await maria.get(f"{PAGE}/{number}.txt")).status == 404, number


async def test_a_second_one_within_a_minute_is_refused_on_the_page(maria: Guest) -> None:
    await maria.webhook("http://127.0.0.1:9999/hook")
    for status in (200, 429):
        await maria.site.db.write(grow)
        page = await maria.submit(PAGE)
        assert page.status == status
        assert page.html.count('data-testid="checkpoint"') == 1
    assert "less than a minute old" in page.html
    assert 0 < int(page.headers["Retry-After"]) <= 60

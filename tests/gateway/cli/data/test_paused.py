"""`carteiro restore --pause` and `carteiro resume`: a copy to look at sends and deletes nothing."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Set
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from gateway.app import build_shared, build_watched, build_work
from gateway.domain.accounts import account_mails, password_resets, users
from gateway.domain.images import uploads
from gateway.server.config import Config, Images, Mail, Server
from gateway.server.parts import PARTS
from outbox.database.transaction import Database, Tx
from outbox.worker.duties import Duties
from tests.support.databases import open_fresh
from tests.support.drain import ring
from tests.support.mailbox import Mailbox, mailbox, settings
from tests.support.orders import placed, product
from tests.support.process import command
from tests.support.rest import UNLIMITED
from tests.support.shop import opened
from tests.support.waiting import until

EXPIRED = "The time to pay for order ORD-000001 is over - Coffee Shop"
"""To a buyer, who may have paid in the installation of the backup since."""
SUBJECTS = {
    EXPIRED,
    "Sua senha foi alterada / Your password was changed - Carteiro",
    "Definir nova senha / Set a new password - Carteiro",
}
"""Mails that are due; the confirmation of the order is none if the order ends before it."""


def config_of(folder: Path, mail: Mail | None = None) -> Config:
    """Return the settings of an installation and of its copy, which share a folder of images."""
    return msgspec.structs.replace(
        UNLIMITED, images=Images(folder=str(folder / "images")), mail=mail or Mail(),
        server=Server(public_url="https://crm.example.com"),
    )  # fmt: skip


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 40), "red").save(file, "PNG")
    return file.getvalue()


async def furnish(url: str, folder: Path) -> None:
    """Make an installation with work that is due, as a server has it that was just stopped."""
    db = await open_fresh(url)
    try:
        async with opened(db, config_of(folder), language="en") as shop:
            owner = shop.owner
            await placed(shop, {await product(owner): 1})
            seen = await product(owner, sku="seen")
            sent = await owner.call(
                "POST", f"/api/products/{seen}/images", data=picture(), Content_Type="image/png"
            )
            assert sent.status == 201, sent.text
            await owner.delete(f"/api/products/{seen}")
            quote = {"items": [{"description": "Coffee", "quantity": 1, "unitPrice": 30}]}
            made = await owner.post("/api/quotes", quote)
            assert made.status == 201, made.text
        await db.write(_let_time_pass, owner.user_id)
    finally:
        await db.close()


async def _let_time_pass(tx: Tx, owner_id: str) -> None:
    await tx.run("update orders set expires_at = 1")
    await tx.run("update quotes set status = 'sent', valid_until = 5, lapses_at = 5")
    await tx.run("update images set unused_at = unused_at - $1", uploads.GRACE + 1)
    # Each duty is due at once.
    await tx.run("delete from duties")
    await account_mails.add(tx, owner_id, "password_changed")
    user = await users.one(tx, owner_id)
    assert user is not None
    await password_resets.request(tx, user["email"])


@asynccontextmanager
async def leading(url: str, config: Config) -> AsyncIterator[tuple[Database, Duties]]:
    """The duties of a server with the product's parts; a test looks at them in place of a timer."""
    db, keys = await open_fresh(url), ring()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(db.close)
        watched = build_watched(config, db, keys, stack)
        shared = build_shared(config, watched, PARTS, stack)
        duties = build_work(config, watched, shared, keys, "api", PARTS).upkeep.duties
        stack.push_async_callback(duties.stop)
        duties.leadership.start()
        await until(lambda: duties.leadership.leads)
        yield db, duties


async def _standing(tx: Tx) -> tuple[list[str], set[str]]:
    """Return the status of the order and of the quote, and the duties that have run."""
    states = await tx.all("select status from orders union all select status from quotes")
    ended = await tx.all("select name from duties where ended_at is not null")
    return [row["status"] for row in states], {row["name"] for row in ended}


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "images").rglob("*") if path.is_file()]


async def look(
    url: str, folder: Path, subjects: Set[str] = frozenset()
) -> tuple[list[str], set[str], Mailbox]:
    """Run all that is due, until mails with these subjects have arrived."""
    async with mailbox() as box, leading(url, config_of(folder, settings(box))) as (db, duties):

        async def looked() -> bool:
            await duties.look()
            await duties.idle()
            return subjects <= {mail["Subject"] for mail in box.mails}

        await until(looked)
        states, ended = await db.read(_standing)
        return states, ended, box


@pytest.mark.usefixtures("duties_look_often")
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
def test_a_paused_copy_sends_and_deletes_nothing_until_it_is_resumed(
    db_url: str, target: str, tmp_path: Path
) -> None:
    asyncio.run(furnish(db_url, tmp_path))
    assert len(files(tmp_path)) == 1
    done = command("backup", "b", folder=tmp_path, CARTEIRO_DATABASE__URL=db_url)
    assert done.returncode == 0, done.stderr
    done = command("restore", "b", "--pause", folder=tmp_path, CARTEIRO_DATABASE__URL=target)
    assert done.returncode == 0, done.stderr
    assert "no mail is sent, no order or quote expires, no image file is deleted" in done.stdout
    assert (
        "`carteiro resume` ends that for all but the webhooks: 2 waiting mails are sent"
        in done.stdout
    )
    states, ended, box = asyncio.run(look(target, tmp_path))
    assert (states, box.mails, box.tries) == (["pending", "sent"], [], 0)
    assert len(files(tmp_path)) == 1
    assert {"retention", "sessions", "carts"} <= ended
    assert not ended & {"mails", "orders", "quotes", "images"}
    done = command("resume", folder=tmp_path, CARTEIRO_DATABASE__URL=target)
    assert "Resumed: 2 waiting mails are sent, orders and quotes expire" in done.stdout
    assert "Webhooks stay paused" in done.stdout
    states, ended, _ = asyncio.run(look(target, tmp_path, SUBJECTS))
    assert states == ["expired", "expired"]
    assert {"mails", "orders", "quotes", "images"} <= ended
    assert files(tmp_path) == []

"""Webhooks as a file in the console: export, a plan to confirm, faults, new secrets shown once."""

from __future__ import annotations

import re
from html import unescape

from gateway.domain.webhooks import webhooks
from gateway.records.audit import Actor
from outbox.database.transaction import Row, Tx
from tests.support.console import Guest, Seen

LIST = "/console/webhooks"
PATH = f"{LIST}/import"
TWO = b"""
[[webhook]]
name = "erp"
url = "https://hooks.example.com/erp"
events = ["contact.created"]
description = "<b>ERP</b> \\" 1"

[[webhook]]
name = "bi"
url = "https://hooks.example.com/bi"
events = ["deal.created"]
headers = { "X-Team" = "sales" }
"""
HIDDEN = re.compile(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">')


async def rows(tx: Tx) -> list[Row]:
    return await tx.all("select * from webhooks order by name")


async def confirm(guest: Guest, plan: Seen) -> Seen:
    """Send the form of a plan as a browser does, which ends lines with CR and LF."""
    fields = [(name, unescape(value)) for name, value in HIDDEN.findall(plan.html)]
    return await guest.post(
        f"{PATH}/apply", [(name, value.replace("\n", "\r\n")) for name, value in fields]
    )


async def test_what_is_not_in_the_file_is_deleted_only_when_that_is_ticked(maria: Guest) -> None:
    await confirm(maria, await maria.upload(PATH, TWO))
    one = TWO.partition(b'\n[[webhook]]\nname = "bi"')[0]
    kept = await maria.upload(PATH, one)
    assert "1 is not in the file and stays." in kept.html
    pruned = await maria.upload(PATH, one, fields=[("prune", "1")])
    assert "Delete" in pruned.html
    assert len(await maria.site.db.read(rows)) == 2
    done = await confirm(maria, pruned)
    assert "The file was applied." in done.html
    assert [row["name"] for row in await maria.site.db.read(rows)] == ["erp"]


async def test_a_plan_that_has_become_old_is_shown_anew(maria: Guest) -> None:
    await confirm(maria, await maria.upload(PATH, TWO))
    plan = await maria.upload(PATH, TWO.replace(b"/erp", b"/new"))
    bi, erp = await maria.site.db.read(rows)
    await maria.site.db.write(webhooks.pause, Actor(erp["owner_id"], "session"), bi["id"])
    stale = await confirm(maria, plan)
    assert stale.status == 409
    assert stale.test_id("stale")
    assert (await maria.site.db.read(rows))[1]["url"] == "https://hooks.example.com/erp"
    assert (await confirm(maria, stale)).status == 200
    assert (await maria.site.db.read(rows))[1]["url"] == "https://hooks.example.com/new"


async def test_a_fault_changes_nothing_and_says_where(maria: Guest) -> None:
    for file, said in (
        (b"\xff", "The file is not UTF-8 text."),
        (b"x = ", "This is no valid TOML"),
        (TWO.replace(b"https://hooks.example.com/bi", b"ftp://x"),
         "Line 10, webhook 'bi', url</bdi></b>"),
        (TWO.replace(b'"sales"', b'{ env = "PATH" }'), "Only the command"),
        (TWO.replace(b'"sales"', b'{ file = "/etc/passwd" }'), "Only the command"),
        (TWO.replace(b'"sales"', b'"***"'), "No value of X-Team is stored; enter its value."),
        (b"#" + b"x" * 32_000, ""),
        (b"#" + "é".encode() * 12_000, "too large for this page"),
    ):  # fmt: skip
        page = await maria.upload(PATH, file)
        assert page.status == (400 if said else 200), said
        assert (said or "No changes: the webhooks") in page.html.replace("&#39;", "'")
    assert await maria.site.db.read(rows) == []


async def test_no_other_site_and_no_other_account_applies_a_file(maria: Guest, rui: Guest) -> None:
    await confirm(maria, await maria.upload(PATH, TWO))
    exported = (await maria.get(f"{LIST}/export")).html
    page = await rui.upload(PATH, exported.encode())
    assert (page.status, "This account has no such webhook" in page.html) == (400, True)
    plan = await maria.upload(PATH, TWO.replace(b"/erp", b"/new"))
    fields = [(name, unescape(value)) for name, value in HIDDEN.findall(plan.html)]
    bare = [one for one in fields if one[0] != "csrf_token"]
    assert (await maria.post(f"{PATH}/apply", bare)).status == 403
    elsewhere = "https://evil.example"
    assert (await maria.post(f"{PATH}/apply", fields, Origin=elsewhere)).status == 403
    assert (await rui.upload(PATH, TWO, token="0" * 88)).status == 403

"""Files of webhooks: read, written, compared with an account, and applied, all or nothing."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from gateway.domain.accounts import users
from gateway.domain.webhooks import file_plan, file_text
from gateway.domain.webhooks.file_plan import Applied, Plan, Tools, Wanted
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox import webhooks as outbox_webhooks
from outbox.database.transaction import Database, Row, Tx
from outbox.sending.addresses import Rules
from outbox.sending.request import new_secret
from outbox.webhooks import sealed_settings
from tests.gateway.domain.webhooks.test_settings import EVERY, RULES
from tests.support.drain import ring

TOOLS = Tools(Rules(), ring(), 5)
ERP = """
[[webhook]]
name = "erp"
url = "https://hooks.example.com/erp"
events = ["deal.created", "deal.updated"]
headers = { "X-Team" = "sales", "Authorization" = { env = "TOKEN" } }
schedule = "5 s, 2 h"
timeout = 5
ordered = true
conditions = ["status = won"]
"""
BI = """
[[webhook]]
name = "bi"
url = "https://hooks.example.com/bi"
events = ["contact.created"]
"""

DEEP = f"{'a.' * 20_000}a = 1"


def look_up(place: str, name: str) -> str:
    return {"TOKEN": "Bearer 1", "SECRET": new_secret(b"s" * 32)}[name]


def wanted(text: str, *, prune: bool = False) -> Wanted:
    return Wanted(text, file_text.read(text, look_up), prune)


class Account:
    """An account whose webhooks come from files."""

    def __init__(self, db: Database, owner_id: str, tools: Tools = TOOLS) -> None:
        self.db, self.actor, self.tools = db, Actor(owner_id, "system"), tools

    async def plan(self, text: str, **options: bool) -> Plan:
        return await self.db.read(file_plan.plan, self.actor, wanted(text, **options), self.tools)

    async def apply(self, text: str, mark: str | None = None, **options: bool) -> Applied:
        secrets = [new_secret(bytes([number]) * 32) for number in range(9)]
        applied = await self.db.write(
            file_plan.apply, self.actor, wanted(text, **options), self.tools, secrets, mark
        )
        await file_plan.finish(self.db, self.actor, applied)
        return applied

    async def export(self) -> str:
        return await self.db.read(file_plan.export, self.actor, self.tools.ring)

    async def rows(self) -> list[Row]:
        return await self.db.read(_rows, self.actor.owner_id)


async def _rows(tx: Tx, owner_id: str) -> list[Row]:
    return await tx.all("select * from webhooks where owner_id = $1 order by name", owner_id)


@pytest.fixture
async def account(db: Database) -> Account:
    owner_id = await db.write(users.add, email="maria@example.com", name="Maria", password_hash="-")
    return Account(db, owner_id)


def acts(plan: Plan) -> list[tuple[str, str, list[str]]]:
    return [(step.act, step.title, [one.setting for one in step.changes]) for step in plan.steps]


def faults_of(text: str) -> dict[str, str]:
    with pytest.raises(Refusal) as caught:
        file_text.read(text)
    return {fault.field: fault.code for fault in caught.value.faults}


async def test_a_file_sends_no_stored_secret_to_another_server(
    db: Database, account: Account
) -> None:
    owner_id, tools = account.actor.owner_id, Tools(RULES, ring(), 5)
    await db.write(
        outbox_webhooks.create, owner_id=owner_id, draft=EVERY, secret=new_secret(b"s" * 32),
        ring=tools.ring,
    )  # fmt: skip
    account.tools = tools
    moved = (await account.export()).replace("hooks.example.com", "other.example.com")
    before = await account.rows()
    for attempt in (account.plan, account.apply):
        with pytest.raises(Refusal) as refused:
            await attempt(moved)
        assert {one.field.rpartition(" ")[2]: one.code for one in refused.value.faults} == {
            "headers": "header_moved", "certificate": "certificate_moved",
            "oauth2.clientSecret": "oauth2_moved", "oauth2.parameters.resource": "oauth2_moved",
        }  # fmt: skip
    assert await account.rows() == before
    said = moved.replace('certificate = "***"\n', "").replace("***", "Bearer 2")
    expected = ["url", "headers", "certificate", "oauth2"]
    assert acts(await account.plan(said)) == [("change", "erp", expected)]


async def test_client_credentials_come_by_reference_and_are_exported_without_secrets(
    account: Account,
) -> None:
    written = (
        'oauth2 = { tokenUrl = "https://login.example.com/t", clientId = "crm", clientSecret = '
        '{ env = "TOKEN" }, parameters = { resource = "x:y", "a.b" = { env = "TOKEN" } } }\n'
    )
    await account.apply(BI + written)
    [row] = await account.rows()
    credentials = sealed_settings.open_oauth2(row["oauth2"], account.tools.ring, row["id"])
    assert credentials is not None
    assert credentials.client_secret == "Bearer 1"
    assert credentials.parameters == (("resource", "x:y"), ("a.b", "Bearer 1"))
    exported = await account.export()
    assert "Bearer" not in exported
    assert acts(await account.plan(exported)) == []
    [change] = (await account.plan(exported.replace("***", "new"))).steps[0].changes
    assert change.before == change.after, "a plan does not show the secrets"
    with pytest.raises(Refusal) as refused:
        await account.plan(BI + 'oauth2 = { tokenurl = "https://login.example.com/t" }\n')
    assert {one.field: one.code for one in refused.value.faults} == {
        "line 6, webhook 'bi', oauth2.tokenurl": "oauth2_part",
        "line 6, webhook 'bi', oauth2.tokenUrl": "required",
        "line 6, webhook 'bi', oauth2.clientId": "required",
        "line 6, webhook 'bi', oauth2.clientSecret": "required",
    }


async def test_order_that_a_file_turns_on_and_off_is_finished(account: Account) -> None:
    await account.apply(ERP)
    for text, ordered in ((ERP.replace("ordered = true\n", ""), False), (ERP, True)):
        await account.apply(text)
        [row] = await account.rows()
        assert bool(row["ordered"]) is ordered
        [lane] = await account.db.read(_lanes)
        assert (bool(lane["turning"]), bool(lane["active"])) == (False, True)


async def _lanes(tx: Tx) -> list[Row]:
    return await tx.all("select turning, active from lanes")


async def test_a_fault_anywhere_applies_nothing(account: Account) -> None:
    await account.apply(BI)
    bad = BI.replace("/bi", "/new") + ERP.replace("https:", "ftp:")
    with pytest.raises(Refusal) as caught:
        await account.apply(bad)
    [fault] = caught.value.faults
    assert fault.field == "line 9, webhook 'erp', url"
    # The last of six is one more than an account may have, which only the write can tell.
    many = "".join(ERP.replace('"erp"', f'"erp-{number}"') for number in range(5))
    with pytest.raises(Refusal) as caught:
        await account.apply(BI.replace("/bi", "/new") + many)
    assert caught.value.code == "conflict"
    [bi] = await account.rows()
    assert (bi["url"], bi["version"]) == ("https://hooks.example.com/bi", 1)


async def test_a_file_reaches_no_webhook_of_another_account(account: Account) -> None:
    await account.apply(BI)
    owner_id = await account.db.write(
        users.add, email="rui@example.com", name="Rui", password_hash="-"
    )
    rui = Account(account.db, owner_id)
    with pytest.raises(Refusal) as caught:
        await rui.plan(await account.export())
    assert [fault.code for fault in caught.value.faults] == ["file_unknown"]
    # The same name is another webhook there.
    assert acts(await rui.plan(BI))[0][:2] == ("create", "bi")
    await rui.apply(BI, prune=True)
    assert len(await account.rows()) == 1


async def test_a_name_that_another_webhook_has_is_refused(account: Account) -> None:
    await account.apply(BI + ERP)
    text = (await account.export()).replace('name = "erp"', 'name = "bi"')
    [bi] = [one for one in text.split("\n\n") if "/bi" in one]
    with pytest.raises(Refusal) as caught:
        await account.apply(text.replace(bi, ""))
    assert [fault.code for fault in caught.value.faults] == ["webhook_name_taken"]


async def test_a_secret_by_reference_signs_and_is_not_shown(account: Account) -> None:
    applied = await account.apply(BI + 'secret = { env = "SECRET" }\n')
    assert [one.secret for one in applied.created] == [None]
    [row] = await account.rows()
    assert TOOLS.ring.open(bytes(row["secret"]), row["id"]).decode() == look_up("env", "SECRET")


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("x = ", {"file": "file_toml"}),
        ("[server]\nport = 1", {"server": "file_key"}),
        ("webhook = 3", {"webhook": "file_type"}),
        (BI + "timeot = 3", {"line 6, webhook 'bi', timeot": "file_key"}),
        (BI + 'timeout = "3"', {"line 6, webhook 'bi', timeout": "file_type"}),
        (BI + "timeout = true", {"line 6, webhook 'bi', timeout": "file_type"}),
        (BI + "ordered = 1", {"line 6, webhook 'bi', ordered": "file_type"}),
        (BI + 'headers = { "a:b" = "c" }', {"line 6, webhook 'bi', headers": "invalid"}),
        (BI + 'headers = { a = "c\\nX: y" }', {"line 6, webhook 'bi', headers": "file_type"}),
        (BI + 'conditions = ["a = b\\nc = d"]', {"line 6, webhook 'bi', conditions": "file_type"}),
        (BI + 'secret = "whsec_AAAA"', {"line 6, webhook 'bi', secret": "file_secret"}),
        (BI + 'description = { env = "X" }',
         {"line 6, webhook 'bi', description": "file_reference"}),
        (BI + 'id = "7"', {"line 6, webhook 'bi', id": "file_id"}),
        (BI + BI, {"line 8, webhook 'bi', name": "file_twice"}),
        ('[[webhook]]\nurl = "https://a.example/"', {"line 1, webhook 1, name": "file_identity"}),
    ],
)  # fmt: skip
def test_a_fault_of_a_file_names_line_webhook_and_key(text: str, faults: dict[str, Any]) -> None:
    assert faults_of(text) == faults


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        f"[{'a.' * 20_000}a]",
        f"x = {{ {DEEP} }}",
        # Quotes that hide it from who ends a text at another place than the parser does.
        f'x = {{ y = """ """", {DEEP}, z = "" }}',
        f"x = {{ y = ''' '''', {DEEP}, z = '' }}",
        f"x = '\"' # \"\n{DEEP}",
        f'x = "\\"" # "\n{DEEP}',
        f'x = """\\""" # """\n{DEEP}',
        f"'\"' . {DEEP}",
    ],
)
def test_a_key_of_many_parts_is_refused_before_it_is_read(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail("it was read"))
    assert faults_of(text) == {"file": "file_toml"}


def test_a_number_too_long_to_be_written_is_refused() -> None:
    assert faults_of("x = " + "1" * 5_000) == {"file": "file_toml"}
    assert faults_of(f"{BI}timeout = 0x{'f' * 5_000}") == {
        "line 6, webhook 'bi', timeout": "file_type"
    }

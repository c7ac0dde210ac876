"""API keys in the console: shown once, valid at once, revoked at once."""

import re
from typing import Any

import pytest

from gateway.domain.accounts import sessions
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from tests.support.console import Guest
from tests.support.drain import rows
from tests.support.failing import failing

LIST = "/console/keys"


async def status_of(guest: Guest, key: str, method: str = "GET") -> int:
    """Return the status of an API request with this key."""
    async with guest.site.http.request(
        method, "/api/contacts", headers={"X-API-Key": key}, json={"name": "Ana"}
    ) as answer:
        return answer.status


async def test_a_key_is_shown_once_and_works(maria: Guest) -> None:
    page = await maria.submit(LIST, name="ERP <sync>", scopes=["read", "write"], expires="30")
    assert page.path == f"{LIST}?done=key_created"
    key = page.test_id("api-key")
    assert key
    assert "ERP &lt;sync&gt;" in page.html
    assert await status_of(maria, key) == 200
    again = await maria.get(LIST)
    assert again.test_id("api-key") is None
    assert key not in again.html
    assert key[:12] in again.html
    assert "in 30 d" in again.html


async def test_a_key_has_its_scopes_and_ends_at_once_when_it_is_revoked(maria: Guest) -> None:
    page = await maria.submit(LIST, name="old", scopes="read", expires="")
    key = page.test_id("api-key")
    assert key
    assert await status_of(maria, key) == 200
    assert await status_of(maria, key, "POST") == 403
    [row] = await maria.site.db.read(rows, "select * from api_keys")
    path = f"{LIST}/{row['id']}/revoke"
    assert "cannot be undone" in (await maria.get(path)).html
    page = await maria.submit(path)
    assert page.path == f"{LIST}?done=revoked"
    assert "No API keys yet" in page.html
    assert await status_of(maria, key) == 401
    assert (await maria.get(path)).status == 404


async def test_what_is_wrong_is_named(maria: Guest) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": " ", "scopes": "read"}, "Enter a name"),
        ({"name": "x" * 101, "scopes": "read"}, "at most 100"),
        ({"name": "a\x00", "scopes": "read"}, "Enter a name"),
        ({"name": "x"}, "Select at least one scope"),
        ({"name": "x", "scopes": ["read", "admin"]}, "Select at least one scope"),
        ({"name": "x", "scopes": "read", "expires": "-1"}, "Select when"),
        ({"name": "x", "scopes": "read", "expires": "99999"}, "Select when"),
    ]
    for fields, says in wrong:
        page = await maria.submit(LIST, **fields)
        assert (page.status, says in page.html) == (400, True), fields
    assert not await maria.site.db.read(rows, "select id from api_keys")


REFUSED = DatabaseUnavailable("busy", "secret detail 4711")
LOST = OutcomeUnknown("connection", "secret detail 4711")


@pytest.mark.parametrize(
    ("unit", "error", "says"),
    [
        (sessions.while_live, REFUSED, "Nothing was changed."),
        (sessions.while_live, LOST, "The change may have been made"),
        # The key is there by now, although its page could not be prepared.
        (sessions.keep_reveal, REFUSED, "The change may have been made"),
    ],
)
async def test_a_page_says_whether_the_change_may_be_there(
    maria: Guest, monkeypatch: pytest.MonkeyPatch, unit: Any, error: Exception, says: str
) -> None:
    failing(monkeypatch, maria.site.db, "write", unit, error)
    page = await maria.submit(LIST, name="ERP", scopes="read", expires="")
    assert page.status == 503
    assert says in page.html
    assert "4711" not in page.html


async def test_a_key_for_chosen_resources_and_what_mcp_clients_may_do(maria: Guest) -> None:
    page = await maria.submit(LIST, name="agent", scopes="read", resources=["deals", "reports"])
    key = page.test_id("api-key")
    assert key
    assert f'"Authorization": "Bearer {key}"' in (page.test_id("mcp-snippet") or "")
    assert "Only: Deals, Reports" in " ".join(re.sub("<[^>]*>", "", page.html).split())
    assert await status_of(maria, key) == 403
    wrong = await maria.submit(LIST, name="agent", scopes="read", resources=["deals", "keys"])
    assert (wrong.status, "Select only what is listed." in wrong.html) == (400, True)
    choices: list[dict[str, Any]] = [{"deletes": "yes"}, {"replays": "yes"}, {}]
    for chosen in choices:
        page = await maria.submit(f"{LIST}/mcp", **chosen)
        assert page.path == f"{LIST}?done=account_saved"
        checked = {
            name
            for name in ("deletes", "replays")
            if f'name="{name}" value="yes" checked' in page.html
        }
        assert checked == set(chosen)

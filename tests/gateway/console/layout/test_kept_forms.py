"""A form that was sent after its session had ended: it comes back filled in, to its own person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from typing import Any

from gateway.console.layout import guard
from gateway.console.layout.refilling import refilled
from gateway.domain.accounts import sessions
from tests.support.console import Guest, Seen
from tests.support.drain import rows
from tests.support.site import PASSWORD, Site

NEW = "/console/webhooks/new"
POST = "/console/webhooks"
URL = 'https://hooks.example.com/crm?a="b"&c=<i>'
TYPED = [
    ("url", URL), ("events", "deal.created"), ("events", "contact.created"),
    ("description", "O'Neil's <b>ERP</b>"), ("timeout", "7"),
    ("headers", "Authorization: Bearer s3cret"),
    ("certificate", "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----"),
    ("conditions", "status = won\nname is present"), ("schedule", "5 s"), ("ordered", "1"),
]  # fmt: skip


Fields = Sequence[tuple[str, str]]


async def user_of(site: Site, email: str = "maria@example.com") -> str:
    [row] = await site.db.read(rows, "select id from users where email = $1", email)
    return str(row["id"])


def sent(guest: Guest, page: str = NEW) -> dict[str, Any]:
    """What a browser says of a form on one of our pages."""
    origin = str(guest.site.url).rstrip("/")
    return {"Origin": origin, "Referer": origin + page, "Sec_Fetch_Site": "same-origin"}


def hidden(page: Seen) -> list[tuple[str, str]]:
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page.html)
    return [(unescape(name), unescape(value)) for name, value in found]


async def expired(maria: Guest, path: str = POST, page: str = NEW, typed: Fields = TYPED) -> Seen:
    """Open a form, end the session, and send the form."""
    token = (await maria.get(page)).csrf
    await maria.site.db.write(sessions.end_all, await user_of(maria.site))
    fields = [("csrf_token", token), *typed]
    return await maria.post(path, fields, **sent(maria, page))


async def signed_in(guest: Guest, page: Seen, email: str = "maria@example.com") -> Seen:
    fields = [*hidden(page), ("email", email), ("password", PASSWORD)]
    return await guest.post("/console/sign-in", fields, **sent(guest))


async def test_secrets_are_in_no_page_and_no_row(maria: Guest) -> None:
    asked = await expired(maria, typed=[*TYPED, ("password", "pass-w0rd"), ("new_password", "pw2")])
    back = await signed_in(maria, asked)
    for page in (asked, back):
        for secret in ("s3cret", "pass-w0rd", "pw2"):
            assert secret not in page.html
    assert not {"f.headers", "f.certificate", "f.password"} & dict(hidden(asked)).keys()


async def test_another_account_that_signs_in_gets_nothing_of_it(maria: Guest, rui: Guest) -> None:
    asked = await expired(maria)
    other = await signed_in(maria, asked, "rui@example.com")
    assert other.path == "/console?done=form_dropped"
    assert "belonged to another account" in other.html
    for path in (NEW, "/console"):
        assert "ERP" not in (await maria.get(path)).html
    assert {row["reveal"] for row in await maria.site.db.read(rows, "select * from sessions")} == {
        None
    }


async def test_what_another_site_sends_is_not_shown(maria: Guest, nobody: Guest) -> None:
    mark = guard.mark_of(await user_of(maria.site))
    ours = sent(nobody)
    for headers in (
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {},
        {"Referer": f"https://evil.example{NEW}"}, {"Referer": NEW},
        {"Referer": ""}, {"Referer": "http://[/console/x"},
    ):  # fmt: skip
        given = {**ours, **headers} if headers else {}
        page = await nobody.post(POST, [("csrf_token", "0" * 64 + mark), *TYPED], **given)
        assert page.path == "/console/sign-in?next=/console"
        assert "ERP" not in page.html


async def test_the_sign_in_page_takes_no_form_from_elsewhere(maria: Guest, nobody: Guest) -> None:
    """Who makes a browser sign in with a form of theirs needs the token of that browser."""
    carried = [
        ("form.path", POST), ("form.page", NEW), ("f.url", "https://evil.example"),
        ("form.owner", guard.mark_of(await user_of(maria.site))),
        ("email", "maria@example.com"), ("password", PASSWORD),
    ]  # fmt: skip
    await nobody.get("/console/sign-in")
    for given in ([], [("csrf_token", "0" * 64)]):
        assert (await nobody.post("/console/sign-in", [*given, *carried])).status == 403
    for where in ("//evil.example", "https://evil.example/console/", "/\\evil", "/api/me"):
        token = (await nobody.get("/console/sign-in")).csrf
        other = [(k, where if k == "form.page" else v) for k, v in carried]
        page = await nobody.post("/console/sign-in", [("csrf_token", token), *other], follow=False)
        assert page.headers["Location"] == "/console"
        await nobody.submit("/console/sign-out", at="/console")


async def test_a_wrong_password_loses_nothing(maria: Guest) -> None:
    asked = await expired(maria)
    fields = [*hidden(asked), ("email", "maria@example.com"), ("password", "wrong")]
    wrong = await maria.post("/console/sign-in", fields)
    assert wrong.status == 401
    assert dict(hidden(wrong))["f.url"] == URL
    assert (await signed_in(maria, wrong)).path == f"{NEW}?done=form_back"


async def test_a_form_of_an_earlier_session_comes_back_at_once(maria: Guest) -> None:
    """Somebody signed out and in again in another tab."""
    old = (await maria.get(NEW)).csrf
    await maria.submit("/console/sign-out", at="/console/account")
    await maria.sign_in()
    back = await maria.post(POST, [("csrf_token", old), *TYPED], **sent(maria))
    assert back.path == f"{NEW}?done=form_back"
    assert "status = won" in back.html
    assert await maria.site.db.read(rows, "select id from webhooks") == []


async def test_a_form_of_an_earlier_session_at_an_odd_address_is_gone(maria: Guest) -> None:
    old = (await maria.get(NEW)).csrf
    await maria.submit("/console/sign-out", at="/console/account")
    await maria.sign_in()
    for odd in ("%0D", "%00", "%3Fa", "%C3%A9"):
        fields = [("csrf_token", old), *TYPED]
        back = await maria.post(f"{POST}/{odd}", fields, **sent(maria))
        assert back.path == "/console?done=form_gone"


async def test_a_form_of_another_account_does_not_come_back(maria: Guest, rui: Guest) -> None:
    theirs = (await rui.get(NEW)).csrf
    page = await maria.post(POST, [("csrf_token", theirs), *TYPED], **sent(maria))
    assert page.status == 403
    assert "ERP" not in page.html


async def test_a_form_that_is_nowhere_any_more_says_so(maria: Guest) -> None:
    path = f"/console/webhooks/{'0' * 24}"
    asked = await expired(maria, path=f"{path}/recover", page="/console/keys")
    back = await signed_in(maria, asked)
    assert back.path == "/console?done=form_gone"


FORM = (
    '<form method="get" action="/a"><input name="x"></form>'
    '<form method="post" action="/a">'
    '<input type="hidden" name="csrf_token" value="new"><input name="x" value="old&amp;">'
    '<select name="s"><option value="1" selected>One</option>'
    '<option value="2">Two</option></select>'
    '<input type="radio" name="r" value="1" checked><input type="radio" name="r" value="2">'
    "<textarea name=\"t\">\nold &lt;</textarea><p>5 &lt; 6 &#39;</p></form>"
    '<form method="post" action="/b"><input name="x" value="other"></form>'
)  # fmt: skip


def test_only_the_form_itself_is_filled_in() -> None:
    fields = [
        ("csrf_token", "stale"), ("x", '"><script>'), ("s", "2"), ("r", "2"),
        ("t", "\n</textarea>"), ("rows[3].name", "<b>"),
    ]  # fmt: skip
    page = refilled(FORM, "/a", fields)
    assert page is not None
    assert '<form method="get" action="/a"><input name="x"></form>' in page
    assert 'name="csrf_token" value="new"' in page
    assert '<input name="x" value="&quot;&gt;&lt;script&gt;">' in page
    assert '<option value="2" selected>' in page
    assert '<option value="1">' in page
    assert '<input type="radio" name="r" value="2" checked>' in page
    assert '<textarea name="t">\n\n&lt;/textarea&gt;</textarea><p>5 &lt; 6 &#39;</p>' in page
    assert '<input name="rows[3].name" value="&lt;b&gt;" autocomplete="off">' in page
    assert '<input name="x" value="other">' in page
    assert refilled(FORM, "/c", fields) is None


async def test_the_passwords_of_a_change_are_typed_again(maria: Guest) -> None:
    page = "/console/account/password"
    fields = re.findall('<input [^>]*type="password"', (await maria.get(page)).html)
    assert len(fields) == 3
    names = [re.findall('name="([^"]*)"', field)[0] for field in fields]
    asked = await expired(maria, page, page, [(name, f"pass-w0rd {name}") for name in names])
    assert "pass-w0rd" not in asked.html

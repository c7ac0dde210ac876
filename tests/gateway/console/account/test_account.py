"""The account page: language, and the change of the password."""

from typing import Any

from outbox.database.transaction import Database
from tests.support.console import CONFIG, Guest, guest
from tests.support.site import PASSWORD, Site, serving

PAGE = "/console/account"
CHANGE = "/console/account/password"
NEW = "outra senha bem longa"


async def test_the_language_is_the_account_s_and_else_the_browser_s(maria: Guest) -> None:
    """A page speaks as the browser asks until the account says otherwise, on sign-in too."""
    asks: Any = {"Accept_Language": "pt-BR,pt;q=0.9"}
    assert '<html lang="pt-BR">' in (await maria.get(PAGE, **asks)).html
    assert '<html lang="en">' in (await maria.get(PAGE)).html
    fields: Any = {"name": "Maria", "timezone": "America/Sao_Paulo"}
    page = await maria.submit(PAGE, **fields, language="pt-BR")
    assert "Conta salva." in page.html
    assert '<option value="pt-BR" lang="pt-BR" selected>' in page.html
    page = await maria.submit(PAGE, **fields, language="en")
    assert "Account saved." in page.html
    assert '<html lang="en">' in (await maria.get(PAGE, **asks)).html
    await maria.submit(PAGE, **fields, language="")
    assert '<html lang="pt-BR">' in (await maria.get(PAGE, **asks)).html


async def test_an_unknown_language_is_refused(maria: Guest) -> None:
    page = await maria.submit(PAGE, name="Maria", timezone="America/Sao_Paulo", language="xx")
    assert page.status == 400
    assert "Send one of: en, pt-BR." in page.html


async def test_a_changed_password_ends_every_other_session(console: Site, maria: Guest) -> None:
    async with guest(console) as elsewhere:
        await elsewhere.sign_in()
        sign_in = {"email": "maria@example.com", "password": PASSWORD}
        async with console.http.post("/api/auth/token", json=sign_in) as answer:
            bearer = {"Authorization": f"Bearer {(await answer.json())['token']}"}
        page = await maria.submit(CHANGE, current=PASSWORD, new=NEW, again=NEW)
        assert page.path == f"{PAGE}?done=password_changed"
        assert "Password changed." in page.html
        assert (await elsewhere.get(PAGE)).path.startswith("/console/sign-in")
        async with console.http.get("/api/me", headers=bearer) as answer:
            assert answer.status == 401
        assert (await elsewhere.sign_in()).status == 401
        assert (await elsewhere.sign_in(password=NEW)).status == 200


async def test_a_refused_change_changes_nothing(console: Site, maria: Guest) -> None:
    for current, new, again, fault in (
        ("wrong", NEW, NEW, "The current password is wrong."),
        (PASSWORD, "short", "short", "8 to 128 characters"),
        (PASSWORD, "trustno1", "trustno1", "too common"),
        (PASSWORD, "maria@example.com", "maria@example.com", "your e-mail address"),
        (PASSWORD, NEW, NEW + "x", "The two new passwords differ."),
        ("\ufffd", NEW, NEW, "The current password is wrong."),
    ):
        page = await maria.submit(CHANGE, current=current, new=new, again=again)
        assert (page.status, fault in page.html) == (400, True), fault
        assert new not in page.html or new in "maria@example.com"
    page = await maria.post(
        CHANGE, [("csrf_token", (await maria.get(CHANGE)).csrf), ("new", "a")],
        Accept_Language="pt-BR",
    )  # fmt: skip
    assert (page.status, "A senha precisa ter de 8 a 128" in page.html) == (400, True)
    async with guest(console) as again_maria:
        assert (await again_maria.sign_in()).status == 200


async def test_guesses_of_the_current_password_are_slowed_as_at_sign_in(still: Database) -> None:
    async with serving(still, CONFIG) as site, guest(site) as maria:
        await site.user()
        await maria.sign_in()
        guesses = [f"guess {n}" for n in range(7)]
        seen = [await maria.submit(CHANGE, current=one, new=NEW, again=NEW) for one in guesses]
    assert [page.status for page in seen[:5]] == [400] * 5
    assert seen[-1].status == 429
    assert int(seen[-1].headers["Retry-After"]) >= 1
    assert "Too many attempts." in seen[-1].html

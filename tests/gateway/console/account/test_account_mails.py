"""What accounts get by mail: links for a password or an address, and notices on security."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from urllib.parse import urlsplit

import aiohttp
import pytest
from msgspec.structs import replace

from gateway.domain import queued_mail
from gateway.domain.accounts import (
    account_letters,
    email_changes,
    password_resets,
    passwords,
    sessions,
    users,
)
from gateway.records.audit import Actor
from gateway.server.config import Config, Limits, Mail, Server
from gateway.server.upkeep.mailer import Mailer
from outbox.database.transaction import Database
from tests.support.codes import enrol
from tests.support.console import CONFIG, Guest, Seen, guest
from tests.support.drain import rows
from tests.support.held_hashes import Held
from tests.support.mailbox import Mailbox, mailbox
from tests.support.site import PASSWORD, Site, serving
from tests.support.waiting import until

SITE = "http://crm.example.com"
HOST = {"Host": "crm.example.com"}
FORGOTTEN = "/console/forgotten-password"
RESET = "/console/reset-password"
EMAIL = "/console/account/email"
SIGN_IN = "/console/sign-in"
CONFIRM = "/console/confirm-email"
NEW = "outra senha bem longa"
NEW_BROWSER = "Sign-in from a new browser"
SAME = "If this email has an account, a link is on its way."


@dataclass
class Post:
    """A console that sends mail, its mailbox, and a browser."""

    site: Site
    box: Mailbox
    browser: Guest
    mails: list[EmailMessage] = field(default_factory=list)
    """Those that the last look has found."""
    of_browsers: list[EmailMessage] = field(default_factory=list)
    """Of these, those about new browsers, which are in nothing else here."""

    async def sent(self) -> list[str]:
        """Send what waits; return the subjects in English of the mails since the last time."""
        await Mailer(self.site.db, settings(self.box), lambda *_: None, site=SITE).run_once()
        # The site sends mails too.
        await until(self._quiet)
        told = [NEW_BROWSER in mail["Subject"] for mail in self.box.mails]
        self.of_browsers = [mail for mail, new in zip(self.box.mails, told, strict=True) if new]
        self.mails = [mail for mail, new in zip(self.box.mails, told, strict=True) if not new]
        self.box.mails.clear()
        return [mail["Subject"].partition(" / ")[2].rpartition(" - ")[0] for mail in self.mails]

    async def _quiet(self) -> bool:
        due = "select 1 from {} where due_at is not null"
        tables = ("queued_mails", "reset_requests")
        return not any([await self.site.db.read(rows, due.format(one)) for one in tables])

    def link(self) -> str:
        """Return the address of the link in the last mail."""
        text = self.mails[-1].get_content()
        found = re.search(rf"{SITE}(/console/[a-z-]+\?token=\S+)", text)
        assert found, text
        return found[1]

    async def ask(self, email: str = "maria@example.com") -> Seen:
        return await self.browser.submit(FORGOTTEN, email=email)

    async def reset(self, link: str, new: str = NEW, again: str = NEW) -> Seen:
        token = link.partition("token=")[2]
        return await self.browser.submit(RESET, at=link, token=token, new=new, again=again)


def settings(box: Mailbox) -> Mail:
    return Mail(host="127.0.0.1", port=box.port, security="none", from_address="crm@example.com")


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    async with mailbox() as box:
        yield box


def sending(box: Mailbox) -> Config:
    limits = replace(CONFIG.limits, forms_per_minute=0)
    return replace(CONFIG, mail=settings(box), server=Server(public_url=SITE), limits=limits)


@pytest.fixture
async def post(db: Database, box: Mailbox) -> AsyncIterator[Post]:
    async with serving(db, sending(box)) as site, visitor(site) as browser:
        await site.user()
        yield Post(site, box, browser)


@asynccontextmanager
async def visitor(site: Site) -> AsyncIterator[Guest]:
    """Return a new browser that asks for the public host."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(site.url, cookie_jar=jar, headers=HOST) as http:
        yield Guest(site, http)


async def entries(site: Site) -> list[tuple[str, str]]:
    """Return the changed fields of accounts in the audit log, each with its cause."""
    found = "select fields, actor_id from audit where resource = 'account' and action = 'updated'"
    return [(row["fields"], row["actor_id"]) for row in await site.db.read(rows, found)]


async def test_a_link_sets_a_password_once_and_ends_what_was_signed_in(post: Post) -> None:
    token = await post.site.token()
    assert SAME in (await post.ask("  MARIA@example.com ")).html
    assert await post.sent() == ["Set a new password"]
    assert post.mails[-1]["To"] == "maria@example.com"
    link = post.link()
    # A mail scanner that opens the link, however often, uses nothing up.
    for _ in range(2):
        opened = await post.browser.get(link)
        assert (opened.status, opened.headers["Referrer-Policy"]) == (200, "same-origin")
        assert opened.headers["Cache-Control"] == "no-store"
    assert (await post.reset(link, "short", "short")).status == 400
    assert (await post.reset(link, "maria@example.com", "maria@example.com")).status == 400
    assert (await post.reset(link, NEW, "other")).status == 400
    done = await post.reset(link)
    assert done.path == "/console/sign-in?done=password_reset"
    # Nobody is signed in by it.
    assert (await post.browser.get("/console/account")).path.startswith("/console/sign-in")
    assert (await post.browser.get(link)).html.count("Ask for another link") == 1
    async with post.site.http.get("/api/me", headers={"Authorization": f"Bearer {token}"}) as me:
        assert me.status == 401
    assert (await post.browser.sign_in()).status == 401
    assert await entries(post.site) == [("password", "mail")]
    assert (await post.browser.sign_in(password=NEW)).path == "/console"
    assert await post.sent() == ["Your password was changed"]
    assert "Network address: 127.0.0.1" in post.mails[-1].get_content()


async def test_the_answer_is_the_same_for_every_address(post: Post) -> None:
    await post.site.db.write(users.disable, await post.site.user("off@example.com"))
    pages = [
        await post.ask(one)
        for one in ("maria@example.com", "nobody@example.com", "off@example.com")
    ]
    assert (
        len(
            {
                (page.status, page.path, re.sub('data-clock="[0-9]*"', "", page.html))
                for page in pages
            }
        )
        == 1
    )
    # Each stored the same, so that each took as long.
    found = await post.site.db.read(rows, "select email, due_at from reset_requests order by id")
    assert [row["due_at"] is None for row in found] == [False] * 3
    assert await post.sent() == ["Set a new password"]
    assert [mail["To"] for mail in post.mails] == ["maria@example.com"]


async def test_an_address_gets_few_mails_and_the_answer_does_not_say_so(post: Post) -> None:
    for _ in range(password_resets.MOST + 2):
        assert SAME in (await post.ask()).html
    assert len(await post.sent()) == password_resets.MOST


async def test_a_host_that_a_request_names_is_in_no_link(post: Post) -> None:
    page = await post.browser.get(FORGOTTEN)
    fields = [("csrf_token", page.csrf), ("email", "maria@example.com")]
    evil = await post.browser.post(FORGOTTEN, fields, Host="evil.example.com")
    assert evil.status == 404
    forwarded = await post.browser.post(FORGOTTEN, fields, X_Forwarded_Host="evil.example.com")
    assert forwarded.status == 404
    assert await post.sent() == []


async def test_of_one_link_used_twice_at_once_one_sets_the_password(post: Post) -> None:
    await post.ask()
    await post.sent()
    token = post.link().partition("token=")[2]
    results = await asyncio.gather(
        *(
            post.site.db.write(password_resets.set_password, token, f"hash {n}", {})
            for n in range(4)
        ),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in results) == ["NoneType", *["Refusal"] * 3]


@pytest.mark.parametrize("ends", ["time", "disabled", "password", "kind"])
async def test_a_link_ends_with_its_time_its_account_and_every_new_password(
    post: Post, ends: str
) -> None:
    await post.ask()
    await post.sent()
    db, link = post.site.db, post.link()
    [owner] = await db.read(rows, "select id from users")
    if ends == "time":
        await db.write(lambda tx: tx.run("update account_tokens set expires_at = $1", tx.now))
    elif ends == "disabled":
        await db.write(users.disable, owner["id"])
    elif ends == "password":
        await db.write(users.set_password, owner["id"], "-")
    else:
        link = link.replace(RESET, CONFIRM)
    assert "expired or was already used" in (await post.browser.get(link)).html
    token = link.partition("token=")[2]
    page = await post.browser.submit(
        urlsplit(link).path, at=FORGOTTEN, token=token, new=NEW, again=NEW
    )
    assert page.status == 403


async def test_a_new_password_is_no_way_around_two_factor_authentication(post: Post) -> None:
    [owner] = await post.site.db.read(rows, "select id from users")
    await enrol(post.site, owner["id"])
    await post.ask()
    await post.sent()
    await post.reset(post.link())
    page = await post.browser.sign_in(password=NEW)
    assert "Enter your code" in page.html
    assert (await post.browser.get("/console/account")).path.startswith("/console/sign-in")


async def test_an_address_changes_when_the_new_one_confirms(post: Post) -> None:
    await post.site.user("rui@example.com")
    await post.browser.sign_in()
    for email, current, fault in (
        ("maria", PASSWORD, "email-fault"), ("Maria@example.com", PASSWORD, "email-fault"),
        ("ana@example.com", "wrong", "current-fault"),
    ):  # fmt: skip
        page = await post.browser.submit(EMAIL, email=email, current=current)
        assert (page.status, fault in page.html) == (400, True), email
    # That the address is taken, only its owner learns.
    for email in ("ana@example.com", "rui@example.com"):
        page = await post.browser.submit(EMAIL, email=email, current=PASSWORD)
        assert "The new email gets a link." in page.html
    assert sorted(await post.sent()) == [
        *["A change of your email was requested"] * 2, *["Confirm your new email"] * 2,
    ]  # fmt: skip
    mails = {mail["To"]: mail.get_content() for mail in post.mails}
    assert set(mails) == {"maria@example.com", "ana@example.com", "rui@example.com"}
    links = {
        to: re.findall(rf"{SITE}({CONFIRM}\S+)", mails[to])[0]
        for to in ("ana@example.com", "rui@example.com")
    }
    # The link is opened in another browser, where nobody is signed in.
    async with visitor(post.site) as phone:
        assert "ana@example.com" in (await phone.get(links["ana@example.com"])).html
        taken = links["rui@example.com"]
        page = await phone.submit(CONFIRM, at=taken, token=taken.partition("=")[2])
        assert (page.status, "Another account has this email" in page.html) == (409, True)
        token = links["ana@example.com"].partition("=")[2]
        page = await phone.submit(CONFIRM, at=links["ana@example.com"], token=token)
        assert page.path == "/console/sign-in?done=email_changed"
        assert (await phone.submit(CONFIRM, at=FORGOTTEN, token=token)).status == 403
        assert (await phone.sign_in("maria@example.com")).status == 401
        assert (await phone.sign_in("ana@example.com")).path == "/console"
    assert await entries(post.site) == [("email", "mail")]
    assert await post.sent() == ["Your email was changed"]
    assert post.mails[-1]["To"] == "maria@example.com"


async def test_a_new_password_ends_a_change_of_address(post: Post) -> None:
    await post.browser.sign_in()
    await post.browser.submit(EMAIL, email="thief@example.com", current=PASSWORD)
    await post.sent()
    await post.ask()
    await post.sent()
    await post.reset(post.link())
    assert not await post.site.db.read(rows, "select 1 from account_tokens")


@pytest.mark.parametrize("unsent", ["never tried", "put off", "on its way"])
async def test_so_does_it_where_the_mail_is_still_to_be_sent(
    still: Database, box: Mailbox, unsent: str
) -> None:
    """A receiver that puts a mail off would get a token that is newer than the password."""
    async with serving(still, CONFIG) as site:
        owner_id = await site.user()
        actor = Actor(owner_id, "session")
        await still.write(email_changes.request, actor, "thief@example.com", {})
        mail = None
        while unsent != "never tried" and (mail is None or mail.kind != "email_confirm"):
            mail = await still.write(queued_mail.take)
            assert mail is not None
        if unsent == "put off":
            assert mail is not None
            assert await still.write(queued_mail.failed, mail, "450", final=False)
        await still.write(users.set_password, owner_id, "-")
        if mail is not None:
            post = queued_mail.Post("token", "Carteiro", SITE)
            assert await still.write(account_letters.letter, mail, post) is None
            await still.write(queued_mail.failed, mail, "450", final=False)
        kinds = await still.read(rows, "select kind from queued_mails order by kind")
        assert [row["kind"] for row in kinds] == ["email_requested", "password_changed"]
        assert not await still.read(rows, "select 1 from account_tokens")


async def test_a_change_of_address_is_not_asked_for_after_a_new_password(
    monkeypatch: pytest.MonkeyPatch, db: Database, box: Mailbox
) -> None:
    held = Held()
    monkeypatch.setattr(passwords, "HASHER", held)
    async with serving(db, sending(box)) as site, visitor(site) as thief:
        owner_id = await site.user()
        await thief.sign_in()
        page = await held.during(
            lambda: thief.submit(EMAIL, email="thief@example.com", current=PASSWORD),
            lambda: db.write(users.set_password, owner_id, "-"),
        )
        assert page.status == 401
        kinds = await db.read(rows, "select kind from queued_mails where kind like 'email%'")
        assert kinds == []


async def test_a_session_that_another_one_ends_is_told(post: Post) -> None:
    await post.browser.sign_in()
    async with visitor(post.site) as other:
        await other.sign_in()
        listed = await other.get("/console/account")
        [session] = set(re.findall("sessions/([0-9a-f]{24})/end", listed.html)) - {
            re.findall("sessions/([0-9a-f]{24})/end", listed.html)[0]
        }
        await other.post(f"/console/account/sessions/{session}/end", [("csrf_token", listed.csrf)])
        assert (await post.browser.get("/console/account")).path.startswith("/console/sign-in")
        await other.post("/console/account/sign-out-everywhere", [("csrf_token", listed.csrf)])
    assert await post.sent() == ["A session was ended", "All sessions were ended"]


async def test_a_browser_that_is_new_to_an_account_is_told_once(post: Post) -> None:
    await post.site.user("ana@example.com")
    browser = post.browser

    async def told(email: str, password: str = PASSWORD) -> list[str]:
        await browser.sign_in(email, password)
        assert await post.sent() == []
        return [mail["To"] for mail in post.of_browsers]

    assert await told("maria@example.com", "wrong") == []
    assert await told("maria@example.com") == ["maria@example.com"]
    text = post.of_browsers[0].get_content()
    assert "Alguém entrou na sua conta" in text
    assert "Network address: 127.0.0.1" in text
    assert re.search(r"Time: \d{4}-\d\d-\d\d \d\d:\d\d \(America/Sao_Paulo\)", text)
    assert f"{SITE}/console/account" in text
    # The browser stays known when the session ends, and is new to another account.
    page = await browser.get("/console/account")
    await browser.post("/console/sign-out", [("csrf_token", page.csrf)])
    assert await told("maria@example.com") == []
    assert await told("ana@example.com") == ["ana@example.com"]
    assert await told("maria@example.com") == []
    for cookie in browser.http.cookie_jar:
        if cookie.key == "carteiro-device":
            assert (cookie["path"], cookie["httponly"]) == ("/console/sign-in", True)
            cookie.set(cookie.key, "AAAA", "AAAA")
    assert await told("maria@example.com") == ["maria@example.com"]


async def test_the_browser_of_the_first_account_is_not_new(db: Database, box: Mailbox) -> None:
    async with serving(db, sending(box)) as site, visitor(site) as browser:
        await db.write(sessions.offer_first_account, "t" * 30)
        done = await browser.submit(
            "/console/first-account", at=f"/console/first-account?token={'t' * 30}",
            token="t" * 30, email="maria@example.com", name="Maria", password=PASSWORD,
        )  # fmt: skip
        assert done.path == "/console"
        page = await browser.get("/console/account")
        await browser.post("/console/sign-out", [("csrf_token", page.csrf)])
        await browser.sign_in()
        assert not await db.read(rows, "select 1 from queued_mails")


async def test_without_mail_the_pages_name_the_commands(console: Site, maria: Guest) -> None:
    async with guest(console) as nobody:
        for page in (
            await nobody.get(FORGOTTEN),
            await nobody.submit(FORGOTTEN, at=SIGN_IN, email="a@example.com"),
        ):
            assert "carteiro user set-password" in page.html
    assert "carteiro user set maria@example.com --email" in (await maria.get(EMAIL)).html
    for table in ("reset_requests", "queued_mails"):
        assert not await console.db.read(rows, f"select 1 from {table}")


async def test_an_address_may_send_few_forms(db: Database, box: Mailbox) -> None:
    config = replace(sending(box), limits=Limits(forms_per_minute=2, sign_in_per_minute=0))
    async with serving(db, config) as site, visitor(site) as browser:
        pages = [await browser.submit(FORGOTTEN, email=f"p{n}@example.com") for n in range(3)]
        assert [page.status for page in pages] == [200, 200, 429]
        assert int(pages[-1].headers["Retry-After"]) > 0

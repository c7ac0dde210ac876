"""What all pages share: headers, static files, unknown addresses, the text catalogue."""

import asyncio
import re

import pytest
from aiohttp import web
from yarl import URL

from gateway import texts
from gateway.console.layout import display, error_pages, pages, reader
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.console import CONFIG, Guest, guest
from tests.support.site import serving
from tests.support.waiting import until

EN = texts.of("en")
ODD = ("%00", "%0D", "%0A", "%7F", "%2F", "%3Fa", "%23a", "%25", "%5C%5Ca", "%C3%A9", "%ED%A0%80")
"""Parts of addresses that are another address, or none, when they are decoded."""


async def test_every_page_carries_the_policy(maria: Guest) -> None:
    for path in ("/console/sign-in", "/console/webhooks", "/console/nowhere"):
        page = await maria.get(path)
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Cache-Control"] == "no-store"
        assert not re.search(r"<script(?! src)|<style| style=| on[a-z]+=", page.html)


async def test_a_slash_behind_an_address_leads_to_its_page(maria: Guest) -> None:
    for path, found in (
        ("/console/", "/console"), ("/console/webhooks//?a=%20b", "/console/webhooks?a=%20b"),
        ("/console/nowhere/", ""), ("/console/sign-out/", ""),
        # What an address has in percent-encoding stays so.
        *((f"/console/webhooks/{odd}/", f"/console/webhooks/{odd}") for odd in ODD),
        ("/console/webhooks/%0D%0AX:%20y//?a=%0D%0A", "/console/webhooks/%0D%0AX:%20y?a=%0D%0A"),
    ):  # fmt: skip
        answer = await maria.get(path, follow=False)
        assert (answer.status, answer.headers.get("Location", "")) == (303 if found else 404, found)


async def test_a_part_of_a_page_leads_a_stranger_to_the_sign_in_and_back(nobody: Guest) -> None:
    """What is no address of the console leads to the first page."""
    ours, home = nobody.site.url, "/console"
    for current, back in (
        (f"{ours}/console/contacts?q=a%20b", "/console/contacts%3Fq%3Da%2520b"),
        ("/console/contacts", "/console/contacts"),
        ("", home), ("http://[", home), ("http://[::1", home), ("//[/console/x", home),
        ("http://[v1.x]/console", home), ("http://\u2100.example/console/x", home),
        ("http://x:99999999/console/", "/console/"), ("\ud800", home),
        ("https://evil.example", home), ("javascript:alert(1)", home), ("/console/\\evil", home),
        ("a" * 7_000, home),
    ):  # fmt: skip
        given = {"HX_Request": "true", "HX_Current_URL": current}
        part = await nobody.get("/console/contacts", follow=False, **given)
        where = f"/console/sign-in?next={back}"
        assert (part.status, part.headers.get("HX-Redirect")) == (401, where), current
        asked = await nobody.get("/console/nowhere", Referer=current)
        assert asked.status == 404


async def test_a_page_of_an_odd_address_leads_back_to_it(maria: Guest) -> None:
    for odd in ODD:
        page = await maria.get(f"/console/webhooks/{odd}")
        assert page.status == 404
        page = await maria.get(f"/console/webhooks/{odd}/nowhere")
        link = f'href="/console/webhooks/{odd}"'
        assert (page.status, link in page.html.partition("<main")[2]) == (404, True)


async def test_a_long_address_without_a_page_is_little_work(
    nobody: Guest, maria: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its page leads to the nearest one above, and looks for few addresses among all."""
    looked, methods_at = list[str](), error_pages.methods_at

    def counted(app: web.Application, path: str) -> set[str]:
        looked.append(path)
        return methods_at(app, path)

    monkeypatch.setattr(error_pages, "methods_at", counted)
    webhook = f"/console/webhooks/{'0' * 24}"
    for path, back in (
        (f"/console{'/' * 8_000}x", "/console"),
        (f"/console/{'a/' * 4_000}", "/console"),
        (f"/console/webhooks{'//' * 4_000}x", "/console/webhooks"),
        (f"{webhook}/rotate/{'x/' * 4_000}", f"{webhook}/rotate"),
        (f"{webhook}/{'0/' * 4_000}", webhook),
        (f"{webhook}/rotate/activate/x", f"{webhook}/rotate"),
    ):
        address = URL(f"{nobody.site.url}{path}", encoded=True)
        for one, link in ((nobody, "next="), (maria, 'href="')):
            looked.clear()
            async with one.http.delete(address) as answer:
                html = (await answer.text()).partition("<main")[2]
            assert (answer.status, f'{link}{back}"' in html) == (404, True)
            assert len(looked) <= 8


async def test_static_files_are_cached_for_a_year_under_their_digest(nobody: Guest) -> None:
    page = await nobody.get("/console/sign-in")
    files = re.findall(r'(?:href|src)="(/console/static/[^"]+)"', page.html)
    assert len(files) >= 5
    for path in files:
        answer = await nobody.get(path)
        assert answer.status == 200
        assert "immutable" in answer.headers["Cache-Control"]
    plain = await nobody.get("/console/static/console.css")
    assert plain.headers["Cache-Control"] == "no-cache"
    for name in (
        "../pages.py", "..%2fpages.py", "vendor", "no.css", "vendor/../../pages.py", "%00",
    ):  # fmt: skip
        assert (await nobody.get(f"/console/static/{name}")).status == 404


def test_untrusted_text_is_made_inert() -> None:
    for given, shown in (
        (b"plain", "plain"), (b"\xff\x00", "�⟨0000⟩"), ("a\u202eb", "a⟨202E⟩b"),
        ("tab\tline\n", "tab\tline\n"), ("\x1b[31m", "⟨001B⟩[31m"),
        ("👩\u200d👧", "👩\u200d👧"), (None, ""),
    ):  # fmt: skip
        assert display.inert(given) == shown
    for url, shown in (
        ("https://a.example.com/hooks/crm", "https://a.example.com/<wbr>hooks/<wbr>crm"),
        ("https://a.example.com//x?b=1&c=2", "https://a.example.com//x?<wbr>b=1&amp;<wbr>c=2"),
        ("https://a/<b>\u202e", "https://a/<wbr>&lt;b&gt;⟨202E⟩"),
    ):
        assert display.breakable(url) == shown


def test_spans_durations_and_rates() -> None:
    for seconds, shown in (
        (0, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "1 h"), (172_800, "2 d"),
    ):  # fmt: skip
        assert reader.span(seconds * 1_000_000) == shown
    for micros, shown in (
        (None, "–"), (800, "0.8 ms"), (42_000, "42 ms"), (999_999, "999 ms"), (1_250_000, "1.25 s"),
    ):  # fmt: skip
        assert EN.took(micros) == shown
    # A rate is 100 % only when nothing failed.
    for part, shown in (
        (None, "–"), (0, "0 %"), (1, "100 %"), (0.9999, "99.9 %"), (0.5, "50 %"), (1e-9, "0 %"),
    ):  # fmt: skip
        assert EN.percent(part) == shown


async def test_a_wrong_method_has_a_page_that_leads_back(maria: Guest) -> None:
    webhook = f"/console/webhooks/{'0' * 24}"
    for method, path, allowed, back in (
        ("GET", "/console/sign-out", "POST", "/console"),
        ("GET", f"{webhook}/pause", "POST", webhook),
        ("POST", "/console/events", "GET,HEAD", "/console"),
        ("DELETE", "/console/webhooks", "GET,HEAD,POST", "/console"),
        ("PUT", "/console/jobs/none/such/page", "", "/console"),
    ):
        async with maria.http.request(method, path) as answer:
            html = await answer.text()
            assert answer.status == (405 if allowed else 404)
            assert answer.headers.get("Allow", "") == allowed
        assert 'href="/console/account"' in html
        assert not allowed or "othing was changed" in html
        assert f'href="{back}"' in html.partition("<main")[2]


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("language", "says"), [("en", "many pages within a moment"), ("pt-BR", "muitas páginas")]
)
async def test_an_account_has_a_rate_of_pages(
    still: Database, monkeypatch: pytest.MonkeyPatch, language: str, says: str
) -> None:
    """It is that of the account, whatever its sessions; an export counts as ten pages."""
    monkeypatch.setattr(pages, "REST_SECONDS", 0.0)
    limits = Limits(pages_per_second=2, burst=7, sign_in_per_minute=0)
    async with serving(still, Config(limits=limits)) as site:
        for email in ("maria@example.com", "rui@example.com"):
            await site.user(email)
        async with guest(site) as maria, guest(site) as again, guest(site) as rui:
            for one, email in ((maria, "maria"), (again, "maria"), (rui, "rui")):
                await one.sign_in(f"{email}@example.com")
            for path in ("/console/export/contacts.csv", "/console/contacts", "/console/deals"):
                await again.get(path)
            for _ in range(20):
                page = await maria.get("/console/contacts", Accept_Language=language)
            assert (page.status, page.headers["Retry-After"]) == (429, "1")
            assert page.headers["Content-Type"].startswith("text/html")
            assert "default-src" in page.headers["Content-Security-Policy"]
            assert says in page.html
            assert "Maria" not in page.html
            assert (await rui.get("/console/contacts")).status == 200
            # Whoever is not signed in, and what a page loads, count elsewhere.
            assert (await maria.get("/console/static/console.css")).status == 200


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("is_ours", [True, False])
@pytest.mark.parametrize(
    "path",
    [
        "/console/import/contacts", "/console/import/nothing", "/console/webhooks/import",
        "/console/settings/company/logo", f"/console/products/{'0' * 24}/images",
    ],
)  # fmt: skip
async def test_an_upload_counts_as_a_page(
    still: Database, monkeypatch: pytest.MonkeyPatch, path: str, is_ours: bool
) -> None:
    """Also one with a wrong token, and before its file is sent."""
    monkeypatch.setattr(pages, "REST_SECONDS", 0.0)
    limits = Limits(pages_per_second=2, burst=4, sign_in_per_minute=0)
    async with serving(still, Config(limits=limits)) as site, guest(site) as maria:
        await site.user("rui@example.com")
        await site.user("maria@example.com")
        async with guest(site) as rui:
            for one, email in ((rui, "rui"), (maria, "maria")):
                await one.sign_in(f"{email}@example.com")
                token = (await one.get("/console/contacts")).csrf if is_ours else "0" * 64
            seen = [(await rui.get("/console/contacts")).status for _ in range(9)]
            files = [await maria.upload(path, b"a", token=token, follow=False) for _ in range(9)]
            assert [one.status == 429 for one in files] == [status == 429 for status in seen]
            assert (files[-1].status, files[-1].headers["Retry-After"]) == (429, "1")
            assert "many pages within a moment" in files[-1].html
            cookie = "; ".join(f"{one.key}={one.value}" for one in maria.http.cookie_jar)
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n"
            kind = "Content-Type: multipart/form-data; boundary=a\r\nContent-Length: 60000\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(f"{head}{kind}\r\n".encode())
            assert b" 429 " in await reader.readline()
            writer.close()


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_without_a_rate_pages_have_no_bound(still: Database) -> None:
    async with serving(still, CONFIG) as site, guest(site) as maria:
        await site.user("maria@example.com")
        await maria.sign_in("maria@example.com")
        assert {(await maria.get("/console/contacts")).status for _ in range(20)} == {200}


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("at_once", "waits"), [(pages.AT_ONCE, True), (99, False)])
async def test_an_account_has_few_pages_made_at_once(
    db: Database, monkeypatch: pytest.MonkeyPatch, at_once: int, waits: bool
) -> None:
    """Its other pages wait; another account's does not."""
    monkeypatch.setattr(pages, "AT_ONCE", at_once)
    async with serving(db, CONFIG) as site, guest(site) as maria, guest(site) as rui:
        owner = await site.user("maria@example.com")
        await site.user("rui@example.com")
        await maria.sign_in("maria@example.com")
        await rui.sign_in("rui@example.com")
        turns = site.app[pages.TURNS]
        assert all(turns.take_free(owner) for _ in range(pages.AT_ONCE if waits else 4))
        page = asyncio.create_task(maria.get("/console"))
        await until(lambda: turns.waiting == 1 if waits else page.done())
        assert (await rui.get("/console")).status == 200
        assert page.done() != waits
        turns.leave(owner)
        assert (await page).status == 200


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_account_with_too_many_pages_waiting_gets_a_short_page(
    still: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "REST_SECONDS", 0.0)
    async with serving(still, CONFIG) as site, guest(site) as maria:
        owner = await site.user("maria@example.com")
        await maria.sign_in("maria@example.com")
        turns = site.app[pages.TURNS]
        monkeypatch.setattr(turns, "_waiting", 0)
        assert all(turns.take_free(owner) for _ in range(pages.AT_ONCE))
        page = await maria.get("/console/contacts")
        assert (page.status, page.headers["Retry-After"]) == (429, "1")
        assert "many pages within a moment" in page.html
        # An export waits for a place of its own.
        assert (await maria.get("/console/export/contacts.csv")).status == 200

"""Forms: urlencoded UTF-8 of limited size, read only after the rate limit of the address."""

import asyncio
import time
from typing import Any

import pytest

from gateway.console.layout import guard
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.console import Guest, guest
from tests.support.site import Site, serving

URLENCODED = "application/x-www-form-urlencoded"


async def test_a_form_has_a_maximum_of_bytes_and_fields(nobody: Guest) -> None:
    token = (await nobody.get("/console/sign-in")).csrf
    good = [("csrf_token", token), ("email", "x" * 60_000), ("password", "y")]
    assert (await nobody.post("/console/sign-in", good)).status == 401
    assert (await nobody.post("/console/sign-in", [*good, ("z", "z" * 6_000)])).status == 413
    many = [("csrf_token", token), *(("events", str(n)) for n in range(1_499))]
    assert (await nobody.post("/console/sign-in", many)).status == 401
    page = await nobody.post("/console/sign-in", [*many, ("events", "1500")])
    assert page.status == 413
    assert "The form is too large." in page.html


async def test_a_form_without_a_length_ends_at_the_maximum(nobody: Guest, console: Site) -> None:
    head = f"POST /console/sign-in HTTP/1.1\r\nHost: a\r\nContent-Type: {URLENCODED}\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", console.port)
    writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
    for _ in range(70):
        writer.write(b"400\r\n" + b"a" * 1024 + b"\r\n")
    assert b" 413 " in await reader.readline()
    writer.close()


async def test_the_limit_of_the_address_comes_before_the_form(still: Database) -> None:
    limits = Limits(sign_in_per_minute=2)
    async with serving(still, Config(limits=limits)) as site, guest(site) as somebody:
        for path in ("/console/sign-in", "/console/first-account"):
            assert (await somebody.post(path, [("email", "x" * 70_000)])).status == 413
        for path in ("/console/sign-in", "/console/first-account"):
            # The response arrives before the form is sent.
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: {URLENCODED}\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode() + b"Content-Length: 60000\r\n\r\n")
            assert b" 429 " in await reader.readline()
            writer.close()


async def test_what_another_site_sends_uses_up_no_attempt_of_its_visitor(still: Database) -> None:
    limits = Limits(sign_in_per_minute=2)
    async with serving(still, Config(limits=limits)) as site, guest(site) as somebody:
        token = (await somebody.get("/console/sign-in")).csrf
        fields = [("csrf_token", token), ("email", "a@example.com"), ("password", "wrong")]
        other = site.url.replace("http:", "https:")
        elsewhere: list[dict[str, Any]] = [
            *({"Origin": origin} for origin in ("https://evil.example", "null", "", other)),
            *({"Sec_Fetch_Site": where} for where in ("cross-site", "same-site")),
        ]
        for tries in (401, 401, 429):
            for path in ("/console/sign-in", "/console/first-account"):
                for given in elsewhere:
                    assert (await somebody.post(path, fields, **given)).status == 403, given
            ours = await somebody.post("/console/sign-in", fields, Origin=site.url)
            assert ours.status == tries


@pytest.mark.proof
def test_the_worst_form_takes_as_long_as_a_plain_one() -> None:
    """Twenty times as long at most, in the same run."""

    def took(body: bytes) -> float:
        times = []
        for _ in range(5):
            began = time.process_time()
            guard.parse_form(body)
            times.append(time.process_time() - began)
        return min(times)

    plain = took(b"abc=%41def&" * 1_000)
    for body in (b"%41" * 21_845, b"a" * 65_536, b"+" * 65_536, b"%" * 65_536, b"=" * 65_536):
        assert took(body) < 20 * plain

"""Receivers with broken TLS: a named outcome, no downgrade, within the connect timeout."""

import asyncio
import datetime
import ssl
import warnings

import pytest
import trustme

from outbox.sending.outcome import Outcome
from tests.support.receiver import Script, Visit, hostile, receiver
from tests.support.senders import post, sender

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

NOW = datetime.datetime.now(datetime.UTC)

DAY = datetime.timedelta(days=1)


async def answers(visit: Visit) -> None:
    await visit.reply(EMPTY)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def one(
    server: ssl.SSLContext | None, client: ssl.SSLContext, script: Script = answers
) -> Outcome:
    async with hostile(script, server) as there, sender(tls=client) as http:
        outcome = await post(http, there.url.replace("http://", "https://"))
        assert outcome.outcome != "success" or there.requests
        assert outcome.outcome == "success" or not there.requests, "nothing was sent"
        return outcome


async def test_a_name_is_checked_against_the_certificate(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    tls = serving(authority.issue_cert("hooks.example"))
    names = {"hooks.example": ["127.0.0.1"], "other.example": ["127.0.0.1"]}
    async with receiver(tls=tls) as there, sender(tls=trusting, look_up=names.get) as http:  # type: ignore[arg-type] # all names asked for are there
        port = there.url.rpartition(":")[2]
        assert (await post(http, f"https://hooks.example:{port}/")).outcome == "success"
        wrong = await post(http, f"https://other.example:{port}/")
        assert (wrong.outcome, len(there.requests)) == ("tls_error", 1)
        assert "other.example" in (wrong.error or "")


async def test_certificates_that_are_refused(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    good = authority.issue_cert("127.0.0.1")
    old = authority.issue_cert("127.0.0.1", not_before=NOW - 9 * DAY, not_after=NOW - DAY)
    expired = await one(serving(old), trusting)
    assert expired.error == "certificate refused: certificate has expired"
    unknown = await one(serving(trustme.CA().issue_cert("127.0.0.1")), trusting)
    # The default trusts no authority of a test.
    default = await one(serving(good), ssl.create_default_context())
    for outcome in (expired, unknown, default):
        assert outcome.outcome == "tls_error"
        assert (outcome.error or "").startswith("certificate refused: ")
    assert (await one(serving(good), trusting)).outcome == "success"


def outdated(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return `context` limited to TLS 1.0."""
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1
    return context


async def test_obsolete_tls(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    server = outdated(serving(authority.issue_cert("127.0.0.1")))
    assert (await one(server, trusting)).outcome == "tls_error"
    lax = ssl.create_default_context()
    authority.configure_trust(lax)
    assert (await one(server, outdated(lax))).outcome == "success", "the receiver speaks it"


@pytest.mark.parametrize("reset", [False, True])
async def test_disconnecting_in_the_handshake(reset: bool, trusting: ssl.SSLContext) -> None:
    async def leave(visit: Visit) -> None:
        await asyncio.sleep(0)
        if reset:
            visit.reset()

    outcome = await one(None, trusting, leave)
    assert outcome.outcome == "tls_error"


async def test_a_stalled_handshake_ends_with_a_shorter_total(trusting: ssl.SSLContext) -> None:
    async def stall(visit: Visit) -> None:
        await visit.gone()

    async with hostile(stall) as there, sender(tls=trusting) as http:
        url = there.url.replace("http://", "https://")
        outcome = await post(http, url, timeout_s=0.3)
        await there.ended.wait()
    assert outcome.outcome == "tls_error"

"""A client certificate: what is read of a pasted one, and whom connections present it to."""

from __future__ import annotations

import asyncio
import datetime
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from outbox.durations import SECOND
from outbox.sending.client_certificates import LONGEST, CertificateFault, must_be_valid, read
from outbox.sending.request import Via
from tests.support.receiver import receiver
from tests.support.senders import post, sender

NOW = datetime.datetime.now(datetime.UTC)
NOW_US = int(NOW.timestamp()) * SECOND
DAY = datetime.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def own(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("carteiro@client.example")


def pasted(cert: trustme.LeafCert) -> str:
    chain = b"".join(one.bytes() for one in cert.cert_chain_pems)
    return (chain + cert.private_key_pem.bytes()).decode()


def trust_of(authority: trustme.CA) -> Callable[[], ssl.SSLContext]:
    def trust() -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    return trust


def serving(authority: trustme.CA, *, asks: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if asks:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def test_a_receiver_that_requires_a_certificate_gets_it(
    authority: trustme.CA, own: trustme.LeafCert
) -> None:
    via = Via(read(pasted(own)).pem)
    stranger = Via(read(pasted(trustme.CA().issue_cert("carteiro@client.example"))).pem)
    tls = serving(authority, asks=True)
    async with receiver(tls=tls) as there, sender(trust=trust_of(authority)) as http:
        first = await post(http, there.url, via=via)
        second = await post(http, there.url, via=via)
        without = await post(http, there.url)
        other = await post(http, there.url, via=stranger)
        third = await post(http, there.url, via=via)
        assert len(there.requests) == 3
    assert [one.outcome for one in (first, second, third)] == ["success"] * 3
    assert [one.reused for one in (first, second, third)] == [False, True, True]
    # A webhook without the certificate, or with another one, never uses that connection.
    assert (without.outcome, without.reused) == ("connect_error", False)
    assert (other.outcome, other.reused) == ("connect_error", False)


async def test_a_receiver_that_misses_the_certificate_is_told_as_such(
    authority: trustme.CA,
) -> None:
    context = serving(authority, asks=True)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            # On a thread: a server on asyncio closes without the alert.
            plain, _ = server.accept()
            with context.wrap_socket(
                plain, server_side=True, do_handshake_on_connect=False
            ) as secure:
                with suppress(ssl.SSLError):
                    secure.do_handshake()
                # A reset, because of unread data, could overtake the alert.
                with suppress(OSError):
                    while os.read(secure.fileno(), 4096):
                        pass

        refusing = asyncio.create_task(asyncio.to_thread(refuse))
        async with sender(trust=trust_of(authority)) as http:
            url = f"https://127.0.0.1:{server.getsockname()[1]}/"
            outcome = await post(http, url)
        await refusing
    assert outcome.outcome == "tls_error"
    assert "certificate required" in (outcome.error or "")


async def test_a_certificate_does_not_widen_whom_the_sender_trusts(
    authority: trustme.CA, own: trustme.LeafCert
) -> None:
    via = Via(read(pasted(own)).pem)
    async with receiver(tls=serving(authority, asks=False)) as there, sender() as http:
        outcome = await post(http, there.url, via=via)
        assert there.requests == []
    assert outcome.outcome == "tls_error"
    assert (outcome.error or "").startswith("certificate refused")


def test_the_key_may_come_first_and_is_never_shown(own: trustme.LeafCert) -> None:
    text = own.private_key_pem.bytes().decode() + own.cert_chain_pems[0].bytes().decode()
    certificate = read(text.replace("\n", "\r\n"))
    must_be_valid(certificate, NOW_US)
    assert "PRIVATE" not in repr(certificate)
    assert "PRIVATE" not in repr(Via(certificate.pem))
    assert read(certificate.pem) == certificate


def read_now(text: str) -> None:
    must_be_valid(read(text), NOW_US)


def small_key() -> bytes:
    key = rsa.generate_private_key(65_537, 1024)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def written(d: int, modulus: int, p: int, q: int) -> bytes:
    """Return an RSA key of these numbers, which need not be one."""
    public = rsa.RSAPublicNumbers(65_537, modulus)
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), 3, public)
    key = numbers.private_key(unsafe_skip_rsa_key_validation=True)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def as_long_as(bits: int) -> bytes:
    p, q = 2 ** (bits // 2) + 1, 2 ** (bits - bits // 2 - 1) + 1
    return written(2 ** (bits - 2) + 1, p * q, p, q)


def damaged_key() -> bytes:
    numbers = rsa.generate_private_key(65_537, 2048).private_numbers()
    return written(numbers.d + 2, numbers.public_numbers.n, numbers.p, numbers.q)


def locked(cert: trustme.LeafCert) -> bytes:
    key = load_pem_private_key(cert.private_key_pem.bytes(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))


def test_each_fault_of_a_pasted_certificate_has_its_code(
    authority: trustme.CA, own: trustme.LeafCert
) -> None:
    chain, key = own.cert_chain_pems[0].bytes(), own.private_key_pem.bytes()
    old = authority.issue_cert("a@b.example", not_before=NOW - 9 * DAY, not_after=NOW - DAY)
    early = authority.issue_cert("a@b.example", not_before=NOW + DAY, not_after=NOW + 9 * DAY)
    other = authority.issue_cert("a@b.example").private_key_pem.bytes()
    cases = {
        "x" * (LONGEST + 1): "too_long",
        "not a certificate": "not_pem",
        "é" * 40: "not_pem",
        key.decode(): "not_pem",
        chain.decode(): "no_key",
        (chain + key + key).decode(): "no_key",
        (chain + key.replace(b"MH", b"")).decode(): "bad_key",
        (chain + locked(own)).decode(): "locked",
        (chain + other).decode(): "other_key",
        (chain + small_key()).decode(): "weak",
        (chain + as_long_as(4099)).decode(): "long_key",
        (chain + as_long_as(16_384)).decode(): "long_key",
        (chain + damaged_key()).decode(): "bad_key",
        (chain * 11 + key).decode(): "too_many",
        pasted(old): "expired",
        pasted(early): "too_early",
    }
    found = {}
    for text in cases:
        with pytest.raises(CertificateFault) as raised:
            read_now(text)
        found[text] = raised.value.code
        assert (
            "-----BEGIN" not in str(raised.value)
            or "unchanged" in str(raised.value)
            or ("exactly one" in str(raised.value))
        )
    assert found == cases

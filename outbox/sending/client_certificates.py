"""A client certificate with its key, in PEM: check it, and make a TLS context of it.

The standard library loads a key from a file only, so the text goes through a file of the process
that has no name, or, on systems without such files, through one that only this user can read.
"""

import asyncio
import os
import re
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from outbox.durations import DAY, SECOND

LONGEST = 32 * 1024
"""Characters of a certificate with its chain and key."""
ENDS_SOON = 30 * DAY
"""Microseconds before the end of a certificate from which on its owner is warned."""
MOST_IN_CHAIN = 10
SHORTEST_RSA, LONGEST_RSA = 2048, 4096
"""Bits. A handshake with a longer key takes too much of everybody's time."""
LONGEST_KEY = 4096
"""Characters of the key alone; an RSA key of 4096 bits has 3,300."""
MOST_CONTEXTS = 64
"""Each holds the authorities that the system trusts, about a megabyte."""
BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.S)
KEY_FORMATS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
LOCKED = "The private key has a password; remove it before you paste the key."
LONG_KEY = f"An RSA key can have at most {LONGEST_RSA} bits; use a shorter one, or an EC key."

Key = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)
Trust = Callable[[], ssl.SSLContext]
"""Makes a context that verifies receivers."""


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate for requests to one webhook, and when it is valid, in microseconds UTC."""

    pem: str = field(repr=False)
    """The key, then the certificate and its chain."""
    until: int
    since: int = field(default=0, compare=False)
    """Only of a certificate that was just read."""


class CertificateFault(ValueError):
    """What is wrong with a pasted certificate; `code` names the kind of fault.

    The text has a place `{name}` for each of `values`.
    """

    def __init__(self, code: str, text: str, **values: Any) -> None:
        super().__init__(text.format(**values))
        self.code = code
        self.text = text
        self.values: Mapping[str, Any] = values


def read(text: str) -> ClientCertificate:
    """Read a pasted certificate with its chain and its key.

    Raise CertificateFault with a sentence for its owner, which never contains the text.
    """
    if len(text) > LONGEST:
        raise CertificateFault(
            "too_long",
            "The certificate and its key can have at most {most} characters.",
            most=LONGEST,
        )
    pem = text.encode("ascii", "replace")
    chain = _chain(pem)
    key = _key(pem)
    own = chain[0]
    if _public(key.public_key()) != _public(own.public_key()):
        raise CertificateFault(
            "other_key",
            "The private key does not belong to the first certificate; put the certificate of the "
            "key first and its chain after it.",
        )
    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    parts += [link.public_bytes(Encoding.PEM) for link in chain]
    certificate = ClientCertificate(
        b"".join(parts).decode("ascii"),
        _micros(own.not_valid_after_utc),
        _micros(own.not_valid_before_utc),
    )
    try:
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate.pem)
    except ssl.SSLError:
        raise CertificateFault("weak", "TLS cannot use this certificate: it is too weak.") from None
    return certificate


def must_be_valid(certificate: ClientCertificate, now: int) -> None:
    """Raise CertificateFault for one that is not valid at `now`, microseconds UTC."""
    if certificate.until <= now:
        raise CertificateFault("expired", f"The certificate expired on {_day(certificate.until)}.")
    if certificate.since > now:
        raise CertificateFault(
            "too_early", f"The certificate is not valid before {_day(certificate.since)}."
        )


def load(context: ssl.SSLContext, pem: str) -> None:
    """Let connections of `context` present this certificate. Raise ssl.SSLError."""
    with _file(pem.encode("ascii")) as path:
        # A password that is asked for on the terminal would stop the process.
        context.load_cert_chain(path, password=lambda: b"")


class Contexts:
    """The TLS contexts of certificates, made on a thread: each reads the system's authorities."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._made: OrderedDict[str, asyncio.Future[ssl.SSLContext]] = OrderedDict()

    async def of(self, pem: str) -> ssl.SSLContext:
        """Return the context of a certificate. Raise ssl.SSLError, OSError, ValueError.

        One that could not be made is tried again: the file of authorities may be there by then.
        """
        making = self._made.get(pem)
        if making is None:
            making = asyncio.ensure_future(asyncio.to_thread(self._make, pem))
            self._made[pem] = making
            if len(self._made) > MOST_CONTEXTS:
                self._made.popitem(last=False)
        self._made.move_to_end(pem)
        try:
            # Shielded: other requests may wait for the same context.
            return await asyncio.shield(making)
        except Exception:
            self._made.pop(pem, None)
            raise

    def _make(self, pem: str) -> ssl.SSLContext:
        context = self._trust()
        # As aiohttp does for its own.
        context.set_alpn_protocols(("http/1.1",))
        load(context, pem)
        return context


def _chain(pem: bytes) -> list[x509.Certificate]:
    try:
        # Of these blocks alone: a damaged key has a fault of its own.
        chain = x509.load_pem_x509_certificates(b"\n".join(BLOCK.findall(pem)))
    except ValueError:
        raise CertificateFault(
            "not_pem",
            "Paste the certificate in PEM: the lines from -----BEGIN CERTIFICATE----- to "
            "-----END CERTIFICATE-----, unchanged.",
        ) from None
    if len(chain) > MOST_IN_CHAIN:
        raise CertificateFault(
            "too_many", "A certificate can have a chain of at most {most}.", most=MOST_IN_CHAIN
        )
    return chain


def _key(pem: bytes) -> Key:
    if b"ENCRYPTED" in pem:
        raise CertificateFault("locked", LOCKED)
    forms = [name for name in KEY_FORMATS if f"-----BEGIN {name}-----".encode() in pem]
    if len(forms) != 1 or pem.count(b"PRIVATE KEY-----") != 2:
        raise CertificateFault(
            "no_key",
            "Paste exactly one private key in PEM beside the certificate: the lines from "
            "-----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----.",
        )
    start = pem.index(f"-----BEGIN {forms[0]}-----".encode())
    if pem.find(b"-----END ", start) - start > LONGEST_KEY:
        raise CertificateFault("long_key", LONG_KEY)
    try:
        # The test for primes stops the process for up to a second; `_works` is the test instead.
        key = load_pem_private_key(pem[start:], None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise CertificateFault("locked", LOCKED) from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateFault(
            "bad_key", "The private key cannot be read; paste all of its lines."
        ) from None
    if isinstance(key, rsa.RSAPrivateKey):
        if key.key_size < SHORTEST_RSA:
            raise CertificateFault("weak", f"An RSA key must have at least {SHORTEST_RSA} bits.")
        if key.key_size > LONGEST_RSA:
            raise CertificateFault("long_key", LONG_KEY)
        if not _works(key):
            raise CertificateFault("bad_key", "The private key is damaged; paste all of its lines.")
        return key
    if isinstance(
        key, ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
    ):
        return key
    raise CertificateFault("bad_key", "The private key must be an RSA, EC or Ed25519 key.")


def _works(key: rsa.RSAPrivateKey) -> bool:
    """Return whether a key signs what its public half verifies."""
    try:
        signature = key.sign(b"", padding.PKCS1v15(), SHA256())
        key.public_key().verify(signature, b"", padding.PKCS1v15(), SHA256())
    except (ValueError, InvalidSignature):
        return False
    return True


def _public(key: object) -> bytes | None:
    if isinstance(
        key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey
        | ed448.Ed448PublicKey,
    ):  # fmt: skip
        return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return None


def _micros(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp()) * SECOND


def _day(moment: int) -> str:
    return f"{datetime.fromtimestamp(moment // SECOND, UTC):%Y-%m-%d}"


@contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Give a path under which OpenSSL can read `content` while the block lasts."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name

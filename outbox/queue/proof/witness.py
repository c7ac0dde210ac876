"""Read checkpoints that were kept outside, and check their signatures with public keys alone."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from outbox.errors import OutboxError
from outbox.queue.proof.chain_checkpoints import TYPE, digest_of
from outbox.sending import ed25519

# A compact JWS starts with the base64url of `{"`.
JWS = re.compile(r"eyJ[\w-]*\.[\w-]+\.[\w-]+", re.ASCII)
PUBLIC = re.compile(r"whpk_([A-Za-z0-9+/]{43}=)")
X = re.compile(r'"x"\s*:\s*"([\w-]{43})"', re.ASCII)
DIGEST = re.compile("[0-9a-f]{64}")


class NotWitnessed(OutboxError):
    """A file is not the checkpoints of these keys; the text says why."""


@dataclass(frozen=True, slots=True)
class Noted:
    """A place and a digest that a chain must have; `at` is when its last attempt was, if known."""

    place: int
    digest: str
    at: int | None = None


class _Header(Struct, frozen=True):
    alg: str
    kid: str
    typ: str


class _End(Struct, frozen=True):
    id: str
    place: int
    digest: str
    at: int


class _Claims(Struct, frozen=True):
    owner: str
    number: int
    at: int
    previous: str | None
    webhooks: list[_End]


@dataclass(frozen=True, slots=True)
class Witness:
    """The checkpoints of a file: how many they are, the newest one's time, and what they note.

    `ends` are by webhook, in the order of their places.
    """

    checkpoints: int
    newest: int
    ends: Mapping[str, Sequence[Noted]]


def public_keys(text: str) -> Mapping[str, bytes]:
    """Return the public keys in a JWKS, or in texts of the form `whpk_…`, by their ids."""
    found = [binascii.a2b_base64(one) for one in PUBLIC.findall(text)]
    found += [ed25519.from_base64url(one) for one in X.findall(text)]
    return {ed25519.key_id(public): public for public in found}


def read(text: str, keys: Mapping[str, bytes]) -> Witness:
    """Return what the checkpoints in `text` note: an answer of the API, or a JWS for each line.

    Raise NotWitnessed for a signature that is wrong, of an unknown key, or for a broken chain.
    """
    bodies = dict.fromkeys(JWS.findall(text))
    if not bodies:
        raise NotWitnessed("it contains no checkpoint")
    claims = {body: _claims(body, keys) for body in bodies}
    by_number: dict[tuple[str, int], str] = {}
    ends: dict[str, set[Noted]] = {}
    for body, claim in claims.items():
        if by_number.setdefault((claim.owner, claim.number), body) != body:
            raise NotWitnessed(f"it contains two different checkpoints {claim.number} of an owner")
        for end in claim.webhooks:
            ends.setdefault(end.id, set()).add(Noted(end.place, end.digest, end.at))
    for claim in claims.values():
        before = by_number.get((claim.owner, claim.number - 1))
        if before is not None and claim.previous != digest_of(before):
            raise NotWitnessed(f"checkpoint {claim.number} does not continue the one before it")
    return Witness(
        len(claims),
        max(claim.at for claim in claims.values()),
        {
            webhook_id: sorted(noted, key=lambda end: (end.place, end.digest))
            for webhook_id, noted in ends.items()
        },
    )


def _claims(body: str, keys: Mapping[str, bytes]) -> _Claims:
    first, second, third = body.split(".")
    try:
        header = msgspec.json.decode(ed25519.from_base64url(first), type=_Header)
        signature = ed25519.from_base64url(third)
    except (ValueError, msgspec.MsgspecError):
        raise NotWitnessed("it contains a damaged checkpoint") from None
    if header.alg != "EdDSA" or header.typ != TYPE:
        raise NotWitnessed("it contains a signature of something else")
    public = keys.get(header.kid)
    if public is None:
        raise NotWitnessed(f"a checkpoint is signed by the key {header.kid}, which is not given")
    if not ed25519.verifies(public, signature, f"{first}.{second}".encode()):
        raise NotWitnessed("the signature of a checkpoint is wrong")
    try:
        claims = msgspec.json.decode(ed25519.from_base64url(second), type=_Claims)
    except (ValueError, msgspec.MsgspecError):
        raise NotWitnessed("it contains a checkpoint of a later release") from None
    if not all(DIGEST.fullmatch(end.digest) and end.place > 0 for end in claims.webhooks):
        raise NotWitnessed("it contains a checkpoint of a later release")
    return claims

"""Lets an app get a webhook with the consent of its owner, without an API key.

The owner confirms, and the app gets a code by the owner's browser; with the code and the verifier
of its challenge (PKCE, RFC 7636) it fetches the secret. The webhook is made only then: before, no
event goes to an app that has not proven that it began the request. A code is used once, within a
minute. When the right app uses it twice, its webhook is paused, because somebody else may have its
secret (RFC 6749, section 4.1.2).
"""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import json

from gateway.domain.webhooks import settings, webhooks
from gateway.records import audit
from gateway.records.audit import Actor
from outbox.database.expiry import Expiry
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, MINUTE
from outbox.ids import Ids, digest_of
from outbox.queue.upkeep import parking
from outbox.sending.addresses import Rules
from outbox.webhooks import Draft, belong_to_app
from outbox.webhooks.secrets import KeyRing

LASTS = MINUTE
KEPT = DAY
"""How long a code is stored after its end, so that its second use is recognised."""
AUDITED = "connection"
"""The word of the audit log for the consent of an owner."""
MISMATCH = "The code does not belong to this client_id, redirect_uri and code_verifier."
EXPIRED = "The code has expired; send the owner to the connect link again."
TWICE = "The code was used before; its webhook is paused. Send the owner to the connect link again."
ADVICE = "Send the owner to the connect link again."
NO_ACCOUNT = "The account is disabled."

INSERT = """
insert into connect_codes (digest, owner_id, app, app_name, redirect_uri, challenge, url, events,
  created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
FIND = "select * from connect_codes where digest = $1 /*postgres for update*/"
USE = "update connect_codes set webhook_id = $2 where digest = $1 and webhook_id is null"
ENABLED = "select id from users where id = $1 and disabled_at is null"
EXPIRY = Expiry("connect_codes", "digest", kept=KEPT)


@dataclass(frozen=True, slots=True)
class Wish:
    """What an app asks an owner for."""

    app: str
    app_name: str
    redirect_uri: str
    challenge: str
    url: str
    events: Sequence[str]


@dataclass(frozen=True, slots=True)
class Proof:
    """What an app shows to get what the owner allowed; `digest` is that of the code."""

    digest: bytes
    app: str
    redirect_uri: str
    verifier: str


@dataclass(frozen=True, slots=True)
class Connected:
    """The webhook that an app got."""

    webhook_id: str
    url: str
    events: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why an app got nothing."""

    reason: str


def make(ids: Ids) -> str:
    """Return a new code of 256 random bits."""
    return urlsafe_b64encode(ids.token(32)).rstrip(b"=").decode()


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier: RFC 7636, section 4.2."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def judge(wish: Wish, rules: Rules) -> Draft:
    """Return the settings of the webhook that an app asks for. Raises validation_error."""
    typed = {
        **settings.NOTHING,
        "url": wish.url,
        "events": tuple(dict.fromkeys(wish.events)),
        "description": wish.app_name,
    }
    return settings.judge(typed, rules=rules)


async def allow(tx: Tx, actor: Actor, wish: Wish, code: str, most: int) -> None:
    """Store the owner's consent, for the code that the app gets. Raises conflict without room."""
    actor.must("write")
    await webhooks.must_have_room(tx, actor, most)
    await tx.run(
        INSERT, digest_of(code), actor.owner_id, wish.app, wish.app_name, wish.redirect_uri,
        wish.challenge, wish.url, json.encode(wish.events).decode(), tx.now, tx.now + LASTS,
    )  # fmt: skip
    audit.record(tx, actor, "created", AUDITED, None)


async def exchange(
    tx: Tx, proof: Proof, *, secret: str, rules: Rules, ring: KeyRing, most: int
) -> Connected | Failed:
    """Make the webhook of a code, with `secret`. Raises validation_error, conflict."""
    row = await tx.one(FIND, proof.digest)
    if row is None or not _proves(proof, row):
        return Failed(MISMATCH)
    actor = Actor(row["owner_id"], "system", cause="connection")
    if row["webhook_id"] is not None:
        if await parking.pause(tx, row["webhook_id"]):
            audit.record(tx, actor, "paused", "webhook", row["webhook_id"])
        return Failed(TWICE)
    if row["expires_at"] <= tx.now:
        return Failed(EXPIRED)
    if await tx.one(ENABLED, row["owner_id"]) is None:
        return Failed(NO_ACCOUNT)
    wish = _wish(row)
    draft = judge(wish, rules)
    webhook_id = await webhooks.create(tx, actor, draft, secret=secret, ring=ring, most=most)
    await belong_to_app(tx, webhook_id, wish.app)
    await tx.run(USE, proof.digest, webhook_id)
    return Connected(webhook_id, draft.url, draft.events)


def _proves(proof: Proof, row: Row) -> bool:
    pairs = (
        (proof.app, row["app"]),
        (proof.redirect_uri, row["redirect_uri"]),
        (challenge_of(proof.verifier), row["challenge"]),
    )
    return all(hmac.compare_digest(got.encode(), kept.encode()) for got, kept in pairs)


def _wish(row: Row) -> Wish:
    return Wish(
        row["app"], row["app_name"], row["redirect_uri"], row["challenge"], row["url"],
        json.decode(row["events"], type=tuple[str, ...]),
    )  # fmt: skip

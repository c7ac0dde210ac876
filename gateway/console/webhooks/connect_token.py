"""The endpoint where an app changes a code for the secret of its webhook (RFC 6749, section 4.1.3).

It needs no session and no key: the code, the verifier of its challenge and the registered redirect
URI are the proof.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from gateway.console.layout import guard
from gateway.domain.accounts.networks import share_of
from gateway.domain.webhooks import connecting
from gateway.domain.webhooks.connect_links import Unusable, proof_of
from gateway.domain.webhooks.connecting import ADVICE, Failed
from gateway.records.errors import Refusal, of_database
from gateway.server.app_keys import DB, GUARD, IDS, KEYRING
from gateway.server.http import bodies
from gateway.server.http.rate_limits import LIMITS
from gateway.server.installation import WEBHOOK_RULES
from outbox.database.transaction import commits
from outbox.errors import DatabaseUnavailable
from outbox.sending.request import SECRET_BYTES, new_secret

BUSY = {"rate_limited": 429, "unavailable": 503, "outcome_unknown": 503, "moving": 503}
STATUS = {"not_found": 404, "payload_too_large": 413, "unsupported_media_type": 415}
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


async def exchange(request: web.Request) -> web.StreamResponse:
    """Answer with the webhook and its secret, or with an error of RFC 6749, section 5.2."""
    share = share_of(guard.client_of(request).address)
    try:
        if not guard.on_our_host(request):
            raise Refusal("not_found", "This host has no such endpoint.")
        request.app[LIMITS].count("exchange", share)
        return await _exchanged(request, share)
    except Refusal as refusal:
        return _refused(refusal)
    except DatabaseUnavailable as fault:
        return _refused(of_database(fault, commits.get(), ADVICE))


async def _exchanged(request: web.Request, share: str) -> web.Response:
    try:
        proof = proof_of(await _fields(request))
    except Unusable as bad:
        return _error(bad.error, str(bad))
    app = request.app
    secret = new_secret(app[IDS].token(SECRET_BYTES))
    done = await app[DB].write(
        connecting.exchange, proof, secret=secret, rules=app[GUARD].rules, ring=app[KEYRING],
        most=app[WEBHOOK_RULES].most,
    )  # fmt: skip
    if isinstance(done, Failed):
        return _error("invalid_grant", done.reason)
    # Only failures count, which may be guesses.
    app[LIMITS].take_back("exchange", share)
    body = {
        "webhook_id": done.webhook_id, "secret": secret, "url": done.url, "events": done.events,
        "signature": {"scheme": "standard-webhooks", "versions": ["v1"]},
    }  # fmt: skip
    return _json(body, 200)


async def _fields(request: web.Request) -> Mapping[str, str]:
    """Return the fields of a form or of a JSON object. Raise as they do."""
    name, _ = bodies.media_type(request.headers.get("Content-Type", ""))
    if name == "application/json":
        try:
            return msgspec.json.decode(await bodies.plain(request), type=dict[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Refusal("invalid_json", "The body must be a JSON object of texts.") from None
    form = await guard.read_form(request)
    pairs = form.pairs()
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refusal("validation_error", "Each field must be there once.")
    return dict(pairs)


def _refused(refusal: Refusal) -> web.Response:
    said = "; ".join(one.sentence for one in refusal.faults) or refusal.message
    if refusal.code in BUSY:
        wait = {"Retry-After": str(refusal.facts.get("retry_after", 1))}
        return _error("temporarily_unavailable", said, BUSY[refusal.code], wait)
    if refusal.code in ("conflict", "forbidden"):
        return _error("invalid_grant", said)
    return _error("invalid_request", said, STATUS.get(refusal.code, 400))


def _error(
    error: str, sentence: str, status: int = 400, headers: Mapping[str, str] | None = None
) -> web.Response:
    body = {"error": error, "error_description": sentence.encode("ascii", "replace").decode()}
    return _json(body, status, headers)


def _json(body: Any, status: int, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(body),
        status=status,
        content_type="application/json",
        headers={**HEADERS, **(headers or {})},
    )

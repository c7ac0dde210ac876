"""Receive webhooks in FastAPI: verify the signature, accept each event once.

WEBHOOK_SECRET=whsec_… uvicorn receiver:app --port 9000
"""

import base64
import hmac
import json
import os
import re
import sqlite3
import time

from fastapi import FastAPI, Request, Response

SECRET = os.environ["WEBHOOK_SECRET"]
app = FastAPI()
seen = sqlite3.connect(os.environ.get("SEEN", "seen.db"), check_same_thread=False)
seen.execute("create table if not exists seen (id text primary key)")


def refusal(event_id: str, sent_at: str, signatures: str, body: bytes, now: float) -> str:
    """Return why a request is not from Carteiro, or an empty text."""
    if not (event_id and sent_at and signatures):
        return "missing_header"
    if not re.fullmatch("[0-9]{1,12}", sent_at):
        return "malformed_timestamp"
    if now - int(sent_at) > 300:
        return "timestamp_too_old"
    if int(sent_at) - now > 300:
        return "timestamp_too_new"
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    content = f"{event_id}.{sent_at}.".encode() + body
    right = b"v1," + base64.b64encode(hmac.digest(key, content, "sha256"))
    # During a rotation of the secret there are two signatures.
    given = [one.encode() for one in signatures.split(" ")]
    if not any(hmac.compare_digest(one, right) for one in given):
        return "wrong_signature"
    return ""


@app.post("/")
async def receive(request: Request) -> Response:
    body = await request.body()  # the bytes as they came: a parsed body has lost them
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    event_id, sent_at, signatures = (request.headers.get(name, "") for name in names)
    reason = refusal(event_id, sent_at, signatures, body, time.time())
    if reason:
        return Response(reason, status_code=401)
    # Commit the id together with your own work, so that neither is there without the other.
    with seen:
        first = seen.execute("insert or ignore into seen values (?)", (event_id,)).rowcount
        if first:
            print(json.loads(body)["event"], event_id, flush=True)
    return Response(status_code=204)

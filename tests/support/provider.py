"""A payment provider's adapter: it checks the tokens of orders and reports payments, signed."""

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any

from gateway.domain.storefront.payments import payment_secrets
from gateway.records.audit import Actor
from gateway.server.app_keys import KEYRING
from outbox.sending.request import SECRET_BYTES, new_secret
from tests.support.rest import Reply
from tests.support.shop import Shop


async def stage(shop: Shop) -> str:
    """Create a payment secret of the store, or stage one; return it."""
    secret = new_secret(shop.db.ids.token(SECRET_BYTES))
    actor = Actor(shop.owner.user_id, "session")
    ring = shop.api.site.app[KEYRING]
    await shop.db.write(payment_secrets.stage, actor, shop.store["id"], secret, ring)
    return secret


def signature(secret: str, message_id: str, timestamp: str, body: bytes) -> str:
    """Sign as the specification of Standard Webhooks says, with nothing of ours."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


@dataclass
class Adapter:
    """The adapter of one store."""

    shop: Shop
    secret: str

    async def report(self, number: str, amount: float, reference: str = "ch_1") -> Reply:
        """Report a payment."""
        return await self.send({"orderNumber": number, "amount": amount, "reference": reference})

    async def send(
        self, body: Any, *, ago: int = 0, data: bytes | None = None, **changed: Any
    ) -> Reply:
        """Send a signed call; `changed` replaces headers, without one for None."""
        raw = json.dumps(body).encode() if data is None else data
        timestamp = str(int(time.time()) - ago)
        headers = {
            "webhook_id": "msg_1", "webhook_timestamp": timestamp,
            "webhook_signature": signature(self.secret, "msg_1", timestamp, raw),
            "Content_Type": "application/json", **changed,
        }  # fmt: skip
        path = f"/api/payments/callback/{self.shop.store['id']}"
        sent = {name: text for name, text in headers.items() if text is not None}
        return await self.shop.api.nobody.call("POST", path, data=raw, **sent)


async def adapter(shop: Shop) -> Adapter:
    """Return an adapter with the first secret of the store."""
    return Adapter(shop, await stage(shop))

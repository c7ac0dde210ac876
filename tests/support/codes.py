"""Codes of two-factor authentication, and accounts that have it."""

import re
from html import unescape

from cryptography.hazmat.primitives.twofactor.hotp import HOTP

from gateway.domain.accounts import codes, two_factor
from gateway.records.audit import Actor
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from tests.support.site import Site

STEP = codes.STEP_SECONDS * SECOND


def code_of(secret: bytes, now: int, steps: int = 0) -> str:
    """Return the code of an app whose clock is `steps` ahead."""
    number = now // STEP + steps
    return HOTP(secret, codes.DIGITS, codes.HASH).generate(number).decode()


def shown_codes(html: str) -> list[str]:
    """Return the recovery codes that a page shows."""
    found = re.search(r'data-testid="recovery-codes">(.*?)</ol>', html, re.S)
    return re.findall("<code>([^<]+)</code>", found[1]) if found else []


def hidden(html: str, name: str) -> str:
    """Return the value of a hidden field of a page."""
    found = re.search(f'name="{name}" value="([^"]*)"', html)
    assert found, html
    return unescape(found[1])


async def enrol(site: Site, owner_id: str) -> tuple[bytes, list[str]]:
    """Give an account two-factor authentication; return its secret and its recovery codes.

    The code of this step is used by it.
    """
    ring, secret = site.app[KEYRING], codes.new_secret(site.db.ids)
    recovery = list(codes.new_recovery_codes(site.db.ids))

    async def turn_on(tx: Tx) -> bool:
        await two_factor.start(tx, ring, owner_id, secret)
        actor, code = Actor(owner_id, "session"), code_of(secret, tx.now)
        return await two_factor.confirm(tx, ring, actor, code, recovery, "", {})

    assert await site.db.write(turn_on)
    return secret, recovery

"""The requests of a certification: what the webhook adds to its deliveries, they have too."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.sending.request import Request, new_secret
from outbox.worker.certification.checks import CHECKS, GENUINE
from outbox.worker.certification.posts import Kit, Material, Specimen
from outbox.worker.certification.run import Certifier, Limits
from tests.support.receiver import receiver
from tests.support.senders import sender

SECRET = new_secret(b"s" * 32)
CREATED = Specimen("contact.created", {"id": "0" * 24, "name": "Ana (test)"})
MATERIAL = Material((CREATED,), CREATED, CREATED)
URL = "https://hooks.example.com/"
RECORD = "https://crm.example.com/api/contacts/1"


def request_of(url: str = URL) -> Request:
    return Request(
        "", "contact.created", 0, 1, 1, "test", url, b"", (SECRET,), headers=(("X-Own", "v"),)
    )


def kit_of(
    *, public: bool = False, record_url: str | None = None, material: Material = MATERIAL
) -> Kit:
    keys = (Ed25519PrivateKey.from_private_bytes(b"k" * 32),) if public else ()
    request = replace(request_of(), signing_keys=keys, record_url=record_url)
    return Kit(request, material, "Carteiro", SystemClock(), Ids())


def test_only_right_ones_have_a_right_public_signature() -> None:
    kit = kit_of(public=True)
    post = kit.post()
    for right in (post, kit.again(post, 2), kit.post(secrets=(kit.other, kit.secret))):
        assert "v1a," in right.value("webhook-signature")
    never = ("forged", "wrong_secret", "empty_secret", "other_version", "other_case")
    for check in CHECKS:
        if check.name in never:
            assert all("v1a," not in one.value("webhook-signature") for one in check.posts(kit))


def test_a_thin_webhook_gets_thin_events() -> None:
    kit = kit_of(record_url=RECORD)
    for check in (GENUINE, *CHECKS):
        for post in check.posts(kit):
            assert b"Ana" not in post.body
            assert RECORD.encode() in post.body or post.body == b""


@pytest.mark.slow
@pytest.mark.parametrize("hold", [True, False])
async def test_a_certification_whose_turn_does_not_come_still_ends(*, hold: bool) -> None:
    turn = asyncio.Lock()
    if hold:
        await turn.acquire()
    async with receiver() as there, sender() as http:
        request = request_of(url=there.url)
        kit = Kit(request, MATERIAL, "Carteiro", SystemClock(), Ids())
        limits = Limits(5.0, 2.0, turn)
        found = await Certifier(request, kit, http, SystemClock(), limits).run(lambda _: None)
    codes = {one.check: one.code for one in found.findings}
    assert (codes["duplicates_at_once"] == "out_of_time") is hold
    assert turn.locked() is hold

"""The declaration of a webhook's settings: it is whole, and what it shows it reads again."""

from dataclasses import fields

from gateway.domain.webhooks import settings
from gateway.domain.webhooks.settings import SETTINGS, About
from outbox.sending.addresses import Rules
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.proxies import Proxy
from outbox.webhooks import Draft
from outbox.webhooks.conditions import Condition

EVERY = Draft(
    "https://hooks.example.com/crm", ("deal.created", "deal.updated"), "the ERP", 5000,
    (("X-Token", "Bearer 1"),), (5.0, 7200.0), True, (Condition("status", "won"),),
    sequenced=True, name="erp", ed25519=True, concurrency=3, rate=500,
    certificate=ClientCertificate("PRIVATE KEY", 1), proxy="office", thin=True,
    oauth2=ClientCredentials(
        "https://login.example.com/token", "crm", "hush", "a b/.default", "api",
        (("resource", "hush-2"),), "body",
    ),
    format="cloudevents", handshake=True,
)  # fmt: skip
"""A draft in which each setting has a value of its own."""
RULES = Rules(proxies={"office": Proxy("office", "proxy.internal", 3128)})


def test_each_field_of_a_draft_is_a_setting() -> None:
    assert sorted(one.column for one in SETTINGS) == sorted(one.name for one in fields(Draft))


def test_what_a_setting_shows_is_read_as_the_same_value() -> None:
    draft = EVERY
    about = About(
        draft.events, False, RULES, draft.headers, draft.certificate, draft.oauth2, draft.url
    )
    for one in SETTINGS:
        value = getattr(draft, one.column)
        assert value != settings.EMPTY[one.kind], f"{one.name} has no example here"
        shown = one.shown(value)
        assert "Bearer" not in str(shown)
        assert "PRIVATE" not in str(shown)
        assert "hush" not in str(shown)
        assert one.read(shown, about) == value, one.name

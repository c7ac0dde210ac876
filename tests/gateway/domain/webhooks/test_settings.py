"""The declaration of a webhook's settings: it is whole, and what it shows it reads again."""

from outbox.sending.addresses import Rules
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.proxies import Proxy
from outbox.webhooks import Draft
from outbox.webhooks.conditions import Condition

EVERY = Draft(
    "https://hooks.example.com/crm", ("deal.created", "deal.updated"), "the ERP", 5000,
    (("Authorization", "Bearer 1"),), (5.0, 7200.0), True, (Condition("status", "won"),),
    sequenced=True, name="erp", ed25519=True, concurrency=3, rate=500,
    certificate=ClientCertificate("PRIVATE KEY", 1), proxy="office", thin=True,
)  # fmt: skip
"""A draft in which each setting has a value of its own."""
RULES = Rules(proxies={"office": Proxy("office", "proxy.internal", 3128)})

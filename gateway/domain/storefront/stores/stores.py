"""Declares stores and finds the store of a hostname.

A store's hostname and aliases are unique in the installation.
"""

from collections.abc import Sequence

from gateway.domain.sales import documents
from gateway.domain.storefront.stores import hostname_claims, payment_page, shipping, store_origins
from gateway.records import actions, store
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Draft, Record, record_of
from gateway.records.resource import BY_NAME, BY_TIME, Field, Filter, Remove, Resource, Unset
from gateway.records.values import cep, formats, hostnames, nested, numbers, pix_key
from gateway.records.values.nested import Member
from gateway.records.values.strictjson import dumps
from gateway.texts import CODES, HOME
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx

STORES = Resource(
    noun="store",
    plural="stores",
    table="stores",
    description="A store: its hostnames, and how its storefront behaves.",
    fields=(
        Field(
            "hostname", "hostname", hostnames.hostname(),
            "Hostname of the store; unique in the installation.", "shop.example.com",
            required=True,
        ),
        Field("name", "name", formats.title(), "Name of the store.", "Coffee Shop", required=True),
        Field(
            "aliases", "aliases", formats.list_of(hostnames.hostname(), 20),
            "Further hostnames of the store, such as the one with www.",
            ["www.shop.example.com"], default="[]",
        ),
        Field(
            "allowedOrigins", "allowed_origins", formats.list_of(hostnames.origin(), 20),
            "Origins of the web pages that may call the storefront of this store.",
            ["https://shop.example.com"], default="[]",
        ),
        Field(
            "idps", "idps",
            nested.objects(
                (
                    Member("issuer", formats.url(), "The issuer, as in its tokens.", required=True),
                    Member(
                        "clientIds", formats.list_of(formats.title(255), 20),
                        "The accepted audiences of its tokens.", required=True,
                    ),
                    Member(
                        "trustedDomains", formats.list_of(hostnames.hostname(), 50),
                        "Domains whose verified email addresses it may link to an account.",
                    ),
                    Member(
                        "nonceRequired", formats.boolean(), "Whether a sign-in needs a nonce.",
                    ),
                    Member(
                        "maxAgeSeconds", numbers.integer(1, 86_400),
                        "Maximum age of its tokens, in seconds.",
                    ),
                ),
                10,
            ),
            "Identity providers whose sign-in the store accepts.",
            [{"issuer": "https://accounts.google.com", "clientIds": ["123.apps.example"]}],
            default="[]",
        ),
        Field(
            "shippingRules", "shipping_rules",
            nested.objects(
                (
                    Member(
                        "type", formats.slug(), "Key to choose it by; unique per range of CEPs.",
                        required=True,
                    ),
                    Member("name", formats.title(), "Name.", required=True),
                    Member("price", numbers.money(), "Price in BRL.", required=True),
                    Member(
                        "deadline", numbers.integer(0, 365), "Days until delivery.", required=True,
                    ),
                    Member("cepFrom", cep.cep(), "First CEP of the range.", required=True),
                    Member("cepTo", cep.cep(), "Last CEP of the range.", required=True),
                    Member(
                        "freeFrom", numbers.money(1),
                        "Total of the products, before the discount, from which on it is free.",
                    ),
                ),
                200,
            ),
            "Ways to ship, each for a range of CEPs; 01000-000 to 99999-999 is all of Brazil.",
            [
                {
                    "type": "express", "name": "Express", "price": 2500, "deadline": 2,
                    "cepFrom": "01000000", "cepTo": "05999999",
                }
            ],
            default="[]",
            shown_example=[
                {
                    "type": "express", "name": "Express", "price": 25, "deadline": 2,
                    "cepFrom": "01000000", "cepTo": "05999999",
                }
            ],
        ),
        Field(
            "cookieSameSite", "cookie_same_site", formats.one_of("lax", "none"),
            "SameSite of the cookies; `none` for pages on another site.", "lax",
            default="lax", nullable=False,
        ),
        Field(
            "dealOnCheckout", "deal_on_checkout", formats.boolean(),
            "Whether a checkout creates a deal.", True, default=True,
        ),
        Field(
            "reviewModeration", "review_moderation", formats.boolean(),
            "Whether reviews wait for approval.", False, default=False,
        ),
        Field(
            "oneReviewPerProduct", "one_review_each", formats.boolean(),
            "Whether a customer may review a product only once.", False, default=False,
        ),
        Field(
            "pixKey", "pix_key", pix_key.pix_key(),
            "Pix key that receives the payments: a CPF, a CNPJ, an e-mail address, a phone with "
            "+55, or a random key.",
            "pix@shop.example.com",
        ),
        Field(
            "paymentMethods", "payment_methods",
            formats.list_of(formats.one_of(*documents.METHODS), len(documents.METHODS), 1),
            "Methods of payment that a checkout accepts.", ["pix", "card"],
            default=dumps(documents.METHODS), nullable=False,
        ),
        Field(
            "checkoutUrl", "checkout_url", payment_page.template(),
            "Page that takes the payment of an order by card: an https URL with `{token}`, and "
            "with `{orderId}` and `{orderNumber}` where it needs them. The payment secret of the "
            "store signs the token.",
            "https://pay.example.com/{orderNumber}?token={token}",
        ),
        Field(
            "passwordResetUrl", "password_reset_url", formats.url(),
            "Page of the shop to which the mail for a new password leads, with `token` in its "
            "query; by default /reset-password of the hostname.",
            "https://shop.example.com/account/reset",
        ),
        Field(
            "emailVerificationUrl", "email_verification_url", formats.url(),
            "Page of the shop to which the mail that verifies an address leads, with `token` in "
            "its query; by default /verify-email of the hostname.",
            "https://shop.example.com/account/verify",
        ),
        Field(
            "language", "language", formats.one_of(HOME, *(code for code in CODES if code != HOME)),
            "Language of the mails about orders and of the storefront's errors.", HOME,
            default=HOME, nullable=False,
        ),
        Field(
            "orderMails", "order_mails", formats.boolean(),
            "Whether buyers get mails about their orders: received, paid, canceled, expired.",
            True, default=True,
        ),
        Field(
            "orderPageUrl", "order_page_url", formats.url(),
            "Page of the shop that shows an order, to which the mails about orders lead, with "
            "`number` and `token` in its query; without it they have no link.",
            "https://shop.example.com/order",
        ),
        Field(
            "active", "active", formats.boolean(), "Whether the storefront answers.", True,
            default=True,
        ),
    ),
    events={},
    search=("name", "hostname"),
    folded_sort="name",
    sorts=(*BY_TIME, BY_NAME),
    filters=(
        Filter("active", "active = {}", "boolean", "Only active (true) or inactive stores."),
    ),
    cascades=(
        Unset("products", "store_id"),
        Remove("categories", "store_id"),
        Unset("orders", "store_id"),
        Remove("ebooks", "store_id"),
        Remove("customers", "store_id"),
        Remove("reviews", "store_id"),
        Remove("coupons", "store_id"),
        Remove("discount_modals", "store_id"),
        Remove("carts", "store_id", counted=False),
    ),
)  # fmt: skip

CHANGED = "store"
"""What Tx.changed says of a store that the unit changed, before its id."""


async def create(tx: Tx, actor: Actor, draft: Draft) -> Record:
    """Create a store. Raises forbidden, the faults of the draft, conflict for a taken hostname."""
    actor.must("write")
    values = await actions.check(tx, actor, STORES, draft, faults=rules(draft))
    created = await actions.insert(tx, actor, STORES, values)
    await hostname_claims.claim(tx, created)
    await store_origins.create(tx, created)
    tx.changed.add(name_of(created.id))
    return created


async def change(
    tx: Tx, actor: Actor, record_id: str, draft: Draft, expected: frozenset[str] | None = None
) -> Record:
    """Change a store. See actions.change; raises conflict for a taken hostname."""
    before = await actions.own(tx, actor, STORES, record_id, "write", lock=True)
    values = await actions.check(tx, actor, STORES, draft, before, rules(draft))
    actions.must_match(before, expected)
    changes = actions.changes_of(before, values)
    if not changes:
        return before
    after = await actions.update(tx, actor, before, changes)
    if not changes.keys().isdisjoint(("hostname", "aliases")):
        await hostname_claims.change(tx, before, after)
    await store_origins.change(tx, before, after)
    tx.changed.add(name_of(after.id))
    return after


async def remove(
    tx: Tx, actor: Actor, record_id: str, expected: frozenset[str] | None = None
) -> None:
    """Delete a store. See actions.remove."""
    before = await actions.remove(tx, actor, STORES, record_id, expected)
    await hostname_claims.give_up(tx, actor.owner_id, hostname_claims.of(before))
    store_origins.remove(tx, before)
    tx.changed.add(name_of(before.id))


def name_of(store_id: str) -> str:
    """Return the name of a store in Tx.changed."""
    return f"{CHANGED}:{store_id}"


def rules(draft: Draft) -> list[Fault]:
    """Return the faults of the sent shipping rules that depend on each other."""
    sent = draft.sent.get("shippingRules")
    return [] if sent is None else shipping.faults(sent)


_BY_HOSTNAME = """
select h.record_id, u.timezone from store_hosts h
join stores s on s.id = h.record_id join users u on u.id = s.owner_id
where h.value = $1 and s.active and u.disabled_at is null
"""
_PROVEN = " and h.proven_at is not null"
_ACTIVE = f"""
select s.id, u.timezone from stores s join users u on u.id = s.owner_id
where s.id in {IDS} and s.active and u.disabled_at is null
"""


async def active(tx: Tx, ids: Sequence[str]) -> dict[str, Record]:
    """Return the active stores with these ids, of any owner, by id."""
    zones = {row[0]: row[1] for row in await tx.all(_ACTIVE, items(ids))}
    rows = await store.fetch_whole(tx, STORES, [*zones])
    return {key: record_of(STORES, row, tx.now, zones[key]) for key, row in rows.items()}


async def by_hostname(tx: Tx, hostname: str, *, proven: bool = False) -> tuple[Record, str]:
    """Return the active store with this hostname or alias, and its owner's time zone.

    With `proven` only a hostname with a proof counts. Raises store_not_found.
    """
    name = hostnames.normal(hostname)
    host = None if name is None else await tx.one(_BY_HOSTNAME + _PROVEN * proven, name)
    row = None if host is None else await store.fetch(tx, STORES, host["record_id"])
    if host is None or row is None:
        raise not_found(hostname)
    return record_of(STORES, row, tx.now, host["timezone"]), host["timezone"]


def not_found(hostname: str) -> Refusal:
    """Return the refusal of an unknown or inactive hostname."""
    message = f"There is no store with the hostname {hostname[:253]!r}."
    return Refusal("store_not_found", message, faults=[Fault("hostname", "unknown", message)])

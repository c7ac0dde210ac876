"""Handles the list of webhooks; the console manages them."""

from collections.abc import Sequence
from typing import Literal

from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import AVAILABLE_NAMES, FURTHER_NAMES
from gateway.domain.webhooks import subscriptions, webhooks
from gateway.domain.webhooks.subscriptions import Twin
from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from gateway.rest import lists
from gateway.rest.auth import authenticate
from gateway.rest.body import respond
from gateway.rest.document import shapes
from gateway.rest.document.operations import operation
from gateway.rest.shown_waits import Waiting, shown_wait
from gateway.server.app_keys import KEYRING
from outbox.events.cloud_events import MODES
from outbox.queue.state.waits import Waiting as Held
from outbox.sending.client_credentials import ClientAuthentication, ClientCredentials
from outbox.webhooks import Webhook
from outbox.webhooks.secrets import KeyRing


class WebhookWarning(Struct, frozen=True, rename="camel"):
    """`same_url`: the webhook `webhookId` has the same URL, so its receiver gets `events` twice."""

    code: Literal["same_url"]
    webhook_id: Id
    events: list[str]


class OAuth2Record(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How a webhook gets the access tokens for its receiver, without the client secret.

    `parameters` are the names of further parameters, whose values are secrets too.
    """

    token_url: str
    client_id: str
    client_authentication: ClientAuthentication
    scope: str = ""
    audience: str = ""
    parameters: list[str] = []


class WebhookRecord(Struct, frozen=True, rename="camel"):
    """A webhook in the REST API; `waiting` is set while something holds all of its deliveries.

    `oauth2` is set when its receiver wants an access token, `format` when it is not that of the
    contract.
    """

    id: Id
    url: str
    events: list[str]
    is_active: bool
    created_at: Instant
    updated_at: Instant
    waiting: Waiting | UnsetType = UNSET
    warnings: list[WebhookWarning] | UnsetType = UNSET
    oauth2: OAuth2Record | UnsetType = UNSET
    format: Literal["cloudevents", "cloudevents-binary"] | UnsetType = UNSET


def record(
    webhook: Webhook, ring: KeyRing, held: Held | None = None, twins: Sequence[Twin] = ()
) -> WebhookRecord:
    """Return the record of a webhook for the REST API; `held` is what its deliveries wait for."""
    return WebhookRecord(
        id=webhook.id,
        url=webhook.url,
        events=list(webhook.events),
        is_active=webhook.state == "active",
        created_at=dates.show(webhook.created_at),
        updated_at=dates.show(webhook.updated_at),
        waiting=shown_wait(held) or UNSET,
        warnings=[WebhookWarning("same_url", twin.webhook.id, list(twin.events)) for twin in twins]
        or UNSET,
        oauth2=UNSET if webhook.oauth2 is None else _oauth2(webhooks.stored(webhook, ring).oauth2),
        format=next((mode for mode in MODES if mode == webhook.format), UNSET),
    )


def _oauth2(credentials: ClientCredentials | None) -> OAuth2Record | UnsetType:
    """Return the record of client credentials; nothing of those that no key decrypts."""
    if credentials is None:
        return UNSET
    return OAuth2Record(
        credentials.token_url, credentials.client_id, credentials.client_authentication,
        credentials.scope, credentials.audience, [name for name, _ in credentials.parameters],
    )  # fmt: skip


class Webhooks(Struct, frozen=True, rename="camel"):
    """The webhooks of a user, and all events that a webhook can subscribe to.

    `furtherEvents` are those beside the 20 of version 1.0.0.
    """

    data: list[WebhookRecord]
    available_events: list[str]
    further_events: list[str]


WEBHOOK_EXAMPLE = WebhookRecord(
    shapes.example_id("webhook"), "https://hooks.example.com/carteiro",
    ["contact.created", "deal.updated"], True, shapes.NOW, shapes.NOW,
)  # fmt: skip


@operation(
    "listWebhooks",
    "Webhooks",
    "List webhooks and all events",
    shapes.struct(Webhooks([WEBHOOK_EXAMPLE], [*AVAILABLE_NAMES], [*FURTHER_NAMES])),
    description="Create, change and delete webhooks in the console.",
)
async def list_webhooks(request: web.Request) -> web.Response:
    """GET /api/webhooks: list the caller's webhooks and all events."""
    caller = await authenticate(request)
    rows, waits = await lists.read(request, webhooks.listed_with_waits, caller)
    twins = subscriptions.twins(rows)
    ring = request.app[KEYRING]
    data = [record(one, ring, waits.get(one.id), twins.get(one.id, ())) for one in rows]
    return respond(Webhooks(data, [*AVAILABLE_NAMES], [*FURTHER_NAMES]))

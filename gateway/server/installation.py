"""What requests need to know of the configuration: values that `build_app` makes of it once."""

import ipaddress
from dataclasses import dataclass

from aiohttp import web

from gateway.server.config import App, Config

LOCAL = "localhost"


@dataclass(frozen=True, slots=True)
class Site:
    """How people and programs reach this installation."""

    service: str
    """The name of the product."""
    public_url: str
    """`[server] public_url`; empty where each client says how it reaches the server."""
    address: str
    """The public URL, else host and port."""
    page_origins: tuple[str, ...]
    """Further origins whose pages may call the APIs."""
    sends_mail: bool

    @property
    def sends_links(self) -> bool:
        """Whether mails can have links: a link never has an address that a request names."""
        return self.sends_mail and self.public_url != ""


@dataclass(frozen=True, slots=True)
class AccountRules:
    """What holds for the accounts of this installation."""

    open_sign_up: bool
    require_two_factor: bool
    token_seconds: int
    session_seconds: int
    most_keys: int


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """What holds for the webhooks of an account."""

    most: int
    deliveries_days: int
    """How long deliveries are kept."""
    events_days: int
    apps: tuple[App, ...]
    """Those that may ask for a webhook by a connect link."""


SITE = web.AppKey("SITE", Site)
ACCOUNT_RULES = web.AppKey("ACCOUNT_RULES", AccountRules)
WEBHOOK_RULES = web.AppKey("WEBHOOK_RULES", WebhookRules)


def introduce(app: web.Application, config: Config) -> None:
    """Give the application what its handlers need to know."""
    server, auth, limits, retention = config.server, config.auth, config.limits, config.retention
    app[SITE] = Site(
        config.service.name, server.public_url.rstrip("/"), public_address(config, server.port),
        server.cors_origins, bool(config.mail.host),
    )  # fmt: skip
    app[ACCOUNT_RULES] = AccountRules(
        open_sign_up=auth.signup == "open",
        require_two_factor=auth.require_two_factor,
        token_seconds=auth.token_hours * 3600,
        session_seconds=config.console.session_hours * 3600,
        most_keys=limits.keys_per_owner,
    )
    app[WEBHOOK_RULES] = WebhookRules(
        limits.webhooks_per_owner,
        retention.deliveries_days,
        retention.events_days,
        config.connect.apps,
    )


def public_address(config: Config, port: int) -> str:
    """Return the address of this server: `[server] public_url`, else host and port."""
    if config.server.public_url:
        return config.server.public_url.rstrip("/")
    host = _reachable(config.server.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reachable(host: str) -> str:
    """Return a host that leads to this server from its own machine."""
    if host in ("*", "0"):
        return LOCAL
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        # A server of IPv6 alone does not answer where localhost is 127.0.0.1.
        return LOCAL if address.version == 4 else "::1"
    return str(address).replace("%", "%25")

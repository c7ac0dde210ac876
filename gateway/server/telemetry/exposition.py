"""The text of /metrics: who may read it, and how it is rendered without holding up the server."""

import asyncio
import hmac
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, generate_latest

from gateway.domain.accounts.networks import Networks, parse
from gateway.records.errors import Refusal
from gateway.server import config
from gateway.server.proxies import Client
from outbox.clock import Clock

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
CACHED_SECONDS = 1.0


class Exposition:
    """Renders the registry in a thread of its own, at most once a second."""

    def __init__(
        self,
        registry: CollectorRegistry,
        settings: config.Metrics,
        clock: Clock,
        public_url: str = "",
    ) -> None:
        self._registry = registry
        self._token = settings.token
        hosts = (*settings.hosts, urlsplit(public_url).hostname or "")
        self._hosts = frozenset(host.lower() for host in hosts if host)
        self._allowed = Networks(settings.allow)
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "metrics")
        self._lock = asyncio.Lock()
        self._text = b""
        self._rendered: float | None = None

    def admit(self, client: Client, authorization: str) -> None:
        """Raise forbidden, naming the setting, unless this client may read the metrics."""
        scheme, _, token = authorization.partition(" ")
        if self._token and scheme.lower() == "bearer":
            # Bytes, because text that is not ASCII is refused there.
            given = token.strip().encode("utf-8", "surrogateescape")
            if hmac.compare_digest(given, self._token.encode()):
                return
        if not self._is_ours(client.host):
            raise Refusal(
                "forbidden",
                "This host name is none of ours; ask by address, add the name to [metrics] hosts, "
                "or send [metrics] token as Authorization: Bearer.",
            )
        if client.outside or not self._allowed.hold(client.address):
            raise Refusal(
                "forbidden",
                "This address is outside of [metrics] allow; add its network there, or send "
                "[metrics] token as Authorization: Bearer.",
            )

    def _is_ours(self, host: str) -> bool:
        """Whether no page of another site can have asked, by a name that leads to us.

        Names without a dot are those of the local network; nobody can own one.
        """
        name = host.lower()
        if name in self._hosts or parse(name) is not None:
            return True
        name = name.partition(":")[0].rstrip(".")
        return name in self._hosts or (name != "" and "." not in name)

    async def text(self) -> bytes:
        """The exposition, at most a second old."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._rendered is None or now - self._rendered >= CACHED_SECONDS:
                loop = asyncio.get_running_loop()
                self._text = await loop.run_in_executor(
                    self._thread, generate_latest, self._registry
                )
                self._rendered = now
            return self._text

    def close(self) -> None:
        """Let a rendering under way end."""
        self._thread.shutdown(wait=True)

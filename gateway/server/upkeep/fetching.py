"""Fetches documents of identity providers, through the guard that checks every outgoing request."""

import codecs
import re
import zlib

import aiohttp
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from gateway.domain.storefront.sign_in.idp_keys import Fetched, FetchFailed
from outbox.sending.egress_guard import Guard
from outbox.sending.trust import shared
from outbox.sending.urls import Refused, check_url

MOST_BYTES = 262_144
TIMEOUT = aiohttp.ClientTimeout(total=3.0)
ATTEMPTS = 2
PAUSE_SECONDS = 0.1
GZIP = b"\x1f\x8b"
_MAX_AGE = re.compile(r'(?:^|[,\s])max-age="?(\d{1,9})', re.IGNORECASE)
_NO_STORE = re.compile(r"(?:^|[,\s])no-(?:store|cache)\b", re.IGNORECASE)


class _Passing(FetchFailed):
    """A failure that may pass in a moment."""


class Fetcher:
    """Fetches addresses by GET without redirects, cookies and proxies."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._http: aiohttp.ClientSession | None = None

    async def __call__(self, address: str) -> Fetched:
        """Return the document at an address; a passing failure is tried again once.

        Raises FetchFailed.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_fixed(PAUSE_SECONDS),
            retry=retry_if_exception_type(_Passing),
            reraise=True,
        )
        return await retrying(self._get, address)

    async def _get(self, address: str) -> Fetched:
        try:
            target = check_url(address, self._guard.rules)
            async with self._session().get(
                target.url,
                allow_redirects=False,
                timeout=TIMEOUT,
                headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            ) as response:
                if response.status >= 500:
                    raise _Passing(f"status {response.status}")
                if response.status != 200:
                    raise FetchFailed(f"status {response.status}")
                body = await _limited(response.content)
                coding = response.headers.get("Content-Encoding", "")
                age = _max_age(response.headers.get("Cache-Control", ""))
                return Fetched(_plain(body, coding.strip().lower()), age)
        except Refused:
            raise FetchFailed("the address is not allowed") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _Passing(type(error).__name__) from None

    def _session(self) -> aiohttp.ClientSession:
        if self._http is None:
            connector = aiohttp.TCPConnector(
                resolver=self._guard,
                socket_factory=self._guard.open_socket,
                # The guard caches names itself, and checks addresses for each connection.
                use_dns_cache=False,
                force_close=True,
                ssl=shared(self._guard.rules.ca_file),
            )
            self._http = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                # A compressed document could be far larger than its limit.
                auto_decompress=False,
            )
        return self._http

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


async def _limited(stream: aiohttp.StreamReader) -> bytes:
    """Return a whole body of at most MOST_BYTES. Raises FetchFailed."""
    body = bytearray()
    async for chunk in stream.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            raise FetchFailed("the document is too large")
    return bytes(body)


def _plain(body: bytes, coding: str) -> bytes:
    """Return a document without its compression and byte order mark. Raises FetchFailed.

    Some servers compress although the request forbids it, and storages without saying so.
    """
    if body.startswith(GZIP):
        body = _inflated(body, 16 + zlib.MAX_WBITS)
    elif coding == "deflate":
        # With or without the header of zlib: its first byte has 8 in the lower half.
        body = _inflated(body, zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS)
    elif coding not in ("", "identity", "gzip", "x-gzip"):
        raise FetchFailed("the document has an unknown Content-Encoding")
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace").encode()
    return body.removeprefix(codecs.BOM_UTF8)


def _inflated(body: bytes, bits: int) -> bytes:
    """Return what is compressed in a body, at most MOST_BYTES. Raises FetchFailed."""
    inflating = zlib.decompressobj(bits)
    try:
        text = inflating.decompress(body, MOST_BYTES + 1)
    except zlib.error:
        raise FetchFailed("the document cannot be decompressed") from None
    if len(text) > MOST_BYTES:
        raise FetchFailed("the document is too large")
    if not inflating.eof:
        raise FetchFailed("the document is incomplete")
    return text


def _max_age(control: str) -> float | None:
    if _NO_STORE.search(control):
        return 0.0
    match = _MAX_AGE.search(control)
    return None if match is None else float(match[1])

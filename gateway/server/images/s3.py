"""Stores files in a bucket of S3 or of a server that speaks its protocol.

Requests are signed by Signature Version 4 with the digest of the body. A bucket is in the path of
its URLs, as each such server understands.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

import aiohttp

from gateway.domain.images.storage import StorageUnavailable
from gateway.server.config import Images
from outbox.clock import Clock
from outbox.durations import SECOND

SECONDS = 15.0
SERVICE = "s3"
ALGORITHM = "AWS4-HMAC-SHA256"
LONGEST_REASON = 300


def signed(
    settings: Images, method: str, path: str, body: bytes, stamp: str, more: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers of a signed request; `stamp` is its time as 20261128T180000Z."""
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "host": urlsplit(settings.s3_endpoint).netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": stamp,
        **more,
    }
    names = sorted(headers)
    listed = "".join(f"{name}:{headers[name].strip()}\n" for name in names)
    request = "\n".join((method, path, "", listed, ";".join(names), digest))
    scope = f"{stamp[:8]}/{settings.s3_region}/{SERVICE}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{settings.s3_secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["Authorization"] = (
        f"{ALGORITHM} Credential={settings.s3_access_key}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return headers


class Bucket:
    """Stores files in a bucket."""

    def __init__(self, settings: Images, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._origin = settings.s3_endpoint.rstrip("/")
        self._http: aiohttp.ClientSession | None = None

    async def put(self, name: str, data: bytes, media_type: str) -> None:
        await self._ask("PUT", name, data, {"content-type": media_type})

    async def get(self, name: str) -> bytes | None:
        return await self._ask("GET", name, b"", {})

    async def delete(self, name: str) -> None:
        await self._ask("DELETE", name, b"", {})

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def _ask(
        self, method: str, name: str, body: bytes, more: Mapping[str, str]
    ) -> bytes | None:
        """Return the body of the response, None when there is no such file."""
        if self._http is None:
            timeout = aiohttp.ClientTimeout(total=SECONDS)
            self._http = aiohttp.ClientSession(timeout=timeout, trust_env=True)
        path = f"{urlsplit(self._origin).path}/{quote(self._settings.s3_bucket)}/{name}"
        origin = self._origin.removesuffix(urlsplit(self._origin).path)
        now = datetime.fromtimestamp(self._clock.wall() // SECOND, UTC)
        headers = signed(self._settings, method, path, body, now.strftime("%Y%m%dT%H%M%SZ"), more)
        try:
            async with self._http.request(
                method, f"{origin}{path}", data=body or None, headers=headers,
                allow_redirects=False,
            ) as answer:  # fmt: skip
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StorageUnavailable(f"{self._origin}: {error or type(error).__name__}") from error
        if answer.status == 404 and method != "PUT" and b"NoSuchBucket" not in content:
            return None
        if answer.status >= 300:
            reason = content[:LONGEST_REASON].decode("utf-8", "replace")
            raise StorageUnavailable(f"{self._origin} answered {answer.status}: {reason}")
        return content

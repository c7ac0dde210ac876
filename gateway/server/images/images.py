"""The images of an installation: received and stored, served at /images, removed when unused."""

import asyncio
from collections.abc import AsyncIterator

from aiohttp import web

from gateway.domain.images import uploads
from gateway.domain.images.encoding import MOST_BYTES, Encoder, Picture
from gateway.domain.images.storage import Folder, Storage, StorageUnavailable
from gateway.records.errors import Refusal
from gateway.server import startup
from gateway.server.config import Config
from gateway.server.installation import public_address
from gateway.server.telemetry.logs import logger
from outbox.database.transaction import Database

YEAR = 31_536_000
READ_AT_ONCE = 16
NOWHERE = (
    "This installation stores no images: its administrator sets images.folder, a folder that all "
    "nodes share, or images.s3_endpoint."
)
HEADERS = {
    # The content of a name never changes.
    "Cache-Control": f"public, max-age={YEAR}, immutable",
    "X-Content-Type-Options": "nosniff",
    # Whatever it held, it would run nothing.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    # Pages of stores have other origins.
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",
}
KINDS = {ending: media_type for media_type, ending in uploads.ENDINGS.items()}


class Images:
    """The images of an installation."""

    def __init__(self, config: Config, db: Database) -> None:
        self._db = db
        self._limits = config.limits
        self._storage = storage_of(config, db)
        self.encoder = Encoder()
        """Encodes the logos of accounts, too."""
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._base = public_address(config, config.server.port)

    @property
    def stored(self) -> bool:
        """Whether the installation stores images."""
        return self._storage is not None

    def must_be_stored(self) -> Storage:
        """Return where images are. Raise forbidden where the installation stores none."""
        if self._storage is None:
            raise Refusal("forbidden", NOWHERE)
        return self._storage

    async def receive(self, owner_id: str, pieces: AsyncIterator[bytes]) -> tuple[str, Picture]:
        """Encode and store a sent image, and return its URL.

        Raise validation_error, payload_too_large, conflict, rate_limited, unavailable.
        """
        storage = self.must_be_stored()
        with self.encoder.place(owner_id):
            data = bytearray()
            async for piece in pieces:
                data += piece
                if len(data) > MOST_BYTES:
                    text = f"An image must not exceed {MOST_BYTES // 1024**2} MiB."
                    raise Refusal("payload_too_large", text)
            picture = await self.encoder.encode(owner_id, bytes(data))
        name = await self._db.write(
            uploads.keep, owner_id, picture, self._base, self._limits.images_per_owner,
            self._limits.image_bytes_per_owner,
        )  # fmt: skip
        try:
            await storage.put(name, picture.data, picture.media_type)
        except StorageUnavailable as error:
            raise _unavailable(error) from error
        return f"{self._base}{uploads.PATH}{name}", picture

    async def read(self, name: str) -> bytes | None:
        """Return the file of an image. Raise unavailable."""
        if self._storage is None or uploads.NAME.fullmatch(name) is None:
            return None
        try:
            async with self._reading:
                return await self._storage.get(name)
        except StorageUnavailable as error:
            raise _unavailable(error) from error

    async def sweep(self) -> None:
        """Delete images that nothing uses, and write the current address into URLs of the others.

        The duty of the leader.
        """
        if self._storage is None:
            return
        while await self._db.write(uploads.rewrite, self._base) == uploads.REWRITTEN_AT_ONCE:
            pass
        while names := await self._db.write(uploads.removable):
            for name in names:
                await self._storage.delete(name)
            await self._db.write(uploads.removed, names)

    async def close(self) -> None:
        """Close connections to the storage."""
        if self._storage is not None:
            await self._storage.close()


def storage_of(config: Config, db: Database) -> Storage | None:
    """Return where images are stored: in a bucket, in a folder, or nowhere."""
    if config.images.s3_endpoint:
        # Only who has a bucket pays for its client.
        from gateway.server.images.s3 import Bucket

        return Bucket(config.images, db.clock)
    folder = startup.images_folder(config)
    return None if folder is None else Folder(folder)


def warning(config: Config) -> str | None:
    """Return a sentence about a folder that several nodes would each have for themselves."""
    if not config.images.folder or startup.sqlite_file(config) is not None:
        return None
    return (
        f"images.folder is {config.images.folder}: every node that uses this database must see the "
        "same folder there, such as a shared volume; otherwise use images.s3_endpoint"
    )


def _unavailable(error: StorageUnavailable) -> Refusal:
    logger().error("image_storage", text=str(error))
    text = "The storage of images does not answer; try again."
    return Refusal("unavailable", text, facts={"retry_after": 5})


IMAGES = web.AppKey("IMAGES", Images)


async def show(request: web.Request) -> web.Response:
    """GET /images/{name}: an image, or 304 when the client has it."""
    name = request.match_info["name"]
    headers = {**HEADERS, "ETag": f'"{name[:40]}"'}
    known = request.if_none_match or ()
    if uploads.NAME.fullmatch(name) and any(tag.value in (name[:40], "*") for tag in known):
        return web.Response(status=304, headers=headers)
    data = await request.app[IMAGES].read(name)
    if data is None:
        raise web.HTTPNotFound
    return web.Response(
        body=data, headers={**headers, "Content-Type": KINDS[name.rpartition(".")[2]]}
    )


def add_images(router: web.UrlDispatcher) -> None:
    """Add the route; aiohttp supports HEAD wherever there is GET."""
    router.add_get(f"{uploads.PATH}{{name}}", show)

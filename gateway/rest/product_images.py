"""Handles the upload of a product's image."""

import msgspec
from aiohttp import web
from msgspec import Struct

from gateway.domain.images.encoding import LONGEST_SIDE, MOST_BYTES
from gateway.domain.sales import products
from gateway.domain.sales.products import PRODUCTS
from gateway.records import actions
from gateway.records.values.formats import Wrong, text
from gateway.rest.auth import authenticate
from gateway.rest.body import PRIVATE
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import Operation, Parameter, Response, Shape
from gateway.rest.params import refused
from gateway.server.app_keys import DB
from gateway.server.http import bodies, multipart
from gateway.server.images.images import IMAGES

BYTES = "application/octet-stream"
MALFORMED = "Send the whole form, with the image in the part file."
ALT = text(500)


class UploadedImage(Struct, frozen=True):
    """An image of a product as it is stored: `url` stays, and its content never changes."""

    url: str
    alt: str
    width: int
    height: int
    bytes: int


EXAMPLE = UploadedImage(
    "https://crm.example.com/images/0f1e2d3c4b5a69788796a5b4c3d2e1f001234567.jpg",
    "A bag of coffee", 2048, 1536, 312_044,
)  # fmt: skip


async def _upload(request: web.Request) -> web.Response:
    """POST /api/products/{id}/images: add an image to a product."""
    caller = await authenticate(request)
    caller.must("write")
    db, images, product_id = request.app[DB], request.app[IMAGES], request.match_info["id"]
    images.must_be_stored()
    await db.read(actions.own, caller, PRODUCTS, product_id, "write")
    alt, pieces = request.query.get("alt", ""), bodies.pieces(request, MOST_BYTES)
    form = None
    if multipart.is_one(request):
        form = await multipart.read(request, MOST_BYTES, MALFORMED)
        pieces = form.pieces
    url, picture = await images.receive(caller.owner_id, pieces)
    if form is not None:
        alt = form.fields.get("alt", alt)
    try:
        alt = ALT.check(alt) if alt else ""
    except Wrong as wrong:
        raise refused("alt", wrong.message) from None
    await db.write(products.add_image, caller, product_id, url, alt)
    shown = UploadedImage(url, alt, picture.width, picture.height, len(picture.data))
    return web.Response(
        status=201, body=msgspec.json.encode(shown), headers=PRIVATE | {"Location": url}
    )


upload_image = Operation(
    _upload, "uploadProductImage", "Products", "Upload an image of a product",
    {201: Response("The stored image, the last of the product.",
                   shapes.struct(EXAMPLE), ("Location",))},
    description="The body is the file, or `multipart/form-data` with the file in the part `file`: "
    f"JPEG, PNG, WebP, AVIF or GIF, up to {MOST_BYTES // 1024**2} MiB, whatever its name and type. "
    f"It is turned upright, reduced to {LONGEST_SIDE:,} pixels and stored as JPEG, or with "
    "transparency as WebP, without EXIF data such as the place of a photo; of an animation the "
    "first frame. A file that the product has already changes nothing. PATCH of `images` orders "
    "and removes images; the file of one that no product has is deleted after 7 days.",
    parameters=(
        describe.id_of("product"),
        Parameter("alt", {"type": "string", "maxLength": 500}, "Alternative text of the image; in "
                  "a form also a part.", "A bag of coffee"),
    ),
    body=Shape({"type": "string", "format": "binary"}, ""), body_type=BYTES,
    refusals=("conflict", "not_found"),
)  # fmt: skip

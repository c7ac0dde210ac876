"""Checks the picture of a logo and brings it to the size in which it is stored."""

from gateway.domain.images.encoding import Encoder
from gateway.domain.sales.company_settings import Logo
from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal

MOST_BYTES = 2 << 20
MOST_PIXELS = 16_000_000
BOX = (600, 240)
"""The largest width and height of a stored logo, in pixels."""


async def logo_of(encoder: Encoder, owner_id: str, data: bytes) -> Logo:
    """Return the picture of a PNG or JPEG file in the stored size, without the file's other data.

    Raises validation_error, rate_limited, unavailable.
    """
    if len(data) > MOST_BYTES:
        raise _refused("too_large", f"The file is larger than {MOST_BYTES >> 20} MiB.")
    try:
        with encoder.place(owner_id):
            picture = await encoder.encode(owner_id, data, *BOX, MOST_PIXELS)
    except Refusal as fault:
        if fault.code != "validation_error":
            raise
        if fault.faults[0].code == "too_many_pixels":
            message = f"The picture has more than {MOST_PIXELS // 1_000_000} megapixels."
            raise _refused("too_large", message) from None
        raise _refused("invalid_picture", "Send a PNG or JPEG file.") from None
    return Logo(picture.media_type, picture.data)


def _refused(code: str, message: str) -> Exception:
    return refusal([Fault("logo", code, message)])

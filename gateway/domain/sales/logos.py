"""Checks the picture of a logo and brings it to the size in which it is stored."""

import io

from gateway.domain.sales.company_settings import Logo
from gateway.records.errors import Fault
from gateway.records.record import refusal

MOST_BYTES = 2 << 20
MOST_PIXELS = 16_000_000
BOX = (600, 240)
"""The largest width and height of a stored logo, in pixels."""
_KINDS = {"PNG": "image/png", "JPEG": "image/jpeg"}


def logo_of(data: bytes) -> Logo:
    """Return the picture of a PNG or JPEG file in the stored size, without the file's other data.

    Raises validation_error. It takes long, so call it on a thread.
    """
    # Only for logos; it takes longer to load than the rest of a start.
    from gateway.domain.images import encoder

    if len(data) > MOST_BYTES:
        raise _refused("too_large", f"The file is larger than {MOST_BYTES >> 20} MiB.")
    try:
        picture, kind = encoder.decoded(data, BOX, (*_KINDS,), MOST_PIXELS, MOST_PIXELS)
    except encoder.Unfit as unfit:
        if unfit.code == "too_many_pixels":
            message = f"The picture has more than {MOST_PIXELS // 1_000_000} megapixels."
            raise _refused("too_large", message) from None
        raise _refused("invalid_picture", "Send a PNG or JPEG file.") from None
    file = io.BytesIO()
    picture.save(file, kind, optimize=True)
    return Logo(_KINDS[kind], file.getvalue())


def _refused(code: str, message: str) -> Exception:
    return refusal([Fault("logo", code, message)])

"""Checks the picture of a logo and brings it to the size in which it is stored."""

import io
import struct
import warnings

from gateway.domain.sales.company_settings import Logo
from gateway.records.draft import refusal
from gateway.records.errors import Fault

MOST_BYTES = 2 << 20
MOST_PIXELS = 16_000_000
BOX = (600, 240)
"""The largest width and height of a stored logo, in pixels."""
DAMAGED = (
    OSError, ValueError, SyntaxError, EOFError, LookupError, TypeError, struct.error, MemoryError,
)  # fmt: skip
"""What decoders raise for files that are cut off or damaged."""
_KINDS = {"PNG": "image/png", "JPEG": "image/jpeg"}


def logo_of(data: bytes) -> Logo:
    """Return the picture of a PNG or JPEG file in the stored size, without the file's other data.

    Raises validation_error. It takes long, so call it on a thread.
    """
    # Only for logos; it takes longer to load than the rest of a start.
    from PIL import Image, ImageOps

    if len(data) > MOST_BYTES:
        raise _refused("too_large", f"The file is larger than {MOST_BYTES >> 20} MiB.")
    try:
        with warnings.catch_warnings():
            # What it warns of is refused below.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=[*_KINDS]) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    message = f"The picture has more than {MOST_PIXELS // 1_000_000} megapixels."
                    raise _refused("too_large", message)
                # Phones write a JPEG with a second picture behind the first, an MPO.
                kind = "PNG" if picture.format == "PNG" else "JPEG"
                picture.draft("RGB", (BOX[0] * 2, BOX[1] * 2))
                shown = ImageOps.exif_transpose(picture)
                shown = shown.convert("RGB" if kind == "JPEG" else "RGBA")
    except (*DAMAGED, Image.DecompressionBombError):
        raise _refused("invalid_picture", "Send a PNG or JPEG file.") from None
    shown.thumbnail(BOX)
    # A comment and the profile, which may be larger than the picture, would be written again.
    shown.info.clear()
    file = io.BytesIO()
    shown.save(file, kind, optimize=True)
    return Logo(_KINDS[kind], file.getvalue())


def _refused(code: str, message: str) -> Exception:
    return refusal([Fault("logo", code, message)])

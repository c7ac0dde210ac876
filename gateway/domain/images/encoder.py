"""The program that encodes an image anew: a file on its input becomes a file on its output.

It takes the pixels of the longer side, or the width, height and pixels of a logo. It runs as a
process of its own with limits of memory and time (gateway.domain.images.encoding), and is the only
place that imports Pillow. Nothing of the sent file survives but its pixels: no EXIF with the place
of a photo, no profile, no comment, no second file behind the first. The first line of the output is
JSON: `width`, `height` and `media_type`, or the code of its `fault`.
"""

import io
import json
import os
import re
import struct
import sys
import warnings
from collections.abc import Mapping
from typing import Any

from PIL import Image, ImageCms, ImageFile, ImageOps, UnidentifiedImageError

MOST_PIXELS = 120_000_000
"""Of a JPEG, which is reduced while it is decoded. Phones take photos of 108 megapixels."""
MOST_PLAIN_PIXELS = 40_000_000
"""Of any other image, and of a progressive JPEG, which is decoded as a whole."""
QUALITY = 85
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "AVIF")
MOST_SCANS = 100
"""Of a JPEG: each passes over all pixels. Progressive files have about ten."""
LOGO_FORMATS = ("JPEG", "PNG")
MEMORY_BYTES = 1_536 * 1024**2
CPU_SECONDS = 20
NICENESS = 5
SIXTEEN_BITS = 256
OPAQUE = 255
HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_MARKER = re.compile(rb"\xff+([^\x00\x01\xd0-\xd7\xff])", re.DOTALL)
"""A part of a JPEG begins, or the file ends. The bytes of a scan have none of them."""
_START, _END, _SCAN = b"\xd8", b"\xd9", b"\xda"


class Unfit(Exception):
    """An image that is not taken; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def encode(data: bytes, side: int) -> tuple[dict[str, Any], bytes]:
    """Return what the image is, and its new file, of up to `side` pixels. Raise Unfit."""
    plain, _ = decoded(data, (side, side))
    out = io.BytesIO()
    if plain.mode == "RGBA":
        media_type = "image/webp"
        plain.save(out, "WEBP", quality=QUALITY, method=4)
    else:
        media_type = "image/jpeg"
        plain.save(out, "JPEG", quality=QUALITY, optimize=True, progressive=True)
    facts = {"width": plain.width, "height": plain.height, "media_type": media_type}
    return facts, out.getvalue()


def encode_logo(data: bytes, width: int, height: int, most: int) -> tuple[dict[str, Any], bytes]:
    """Return what a logo is, and its new file in the same format. Raise Unfit."""
    plain, kind = decoded(data, (width, height), LOGO_FORMATS, most, most)
    out = io.BytesIO()
    plain.save(out, kind, optimize=True)
    facts = {"width": plain.width, "height": plain.height, "media_type": Image.MIME[kind]}
    return facts, out.getvalue()


def decoded(
    data: bytes,
    box: tuple[int, int],
    formats: tuple[str, ...] = FORMATS,
    most: int = MOST_PIXELS,
    most_plain: int = MOST_PLAIN_PIXELS,
) -> tuple[Image.Image, str]:
    """Return the pixels of a file in a box, upright and in sRGB, and its format. Raise Unfit."""
    if data[4:8] == b"ftyp" and data[8:12] in HEIF_BRANDS and b"avif" not in data[8:64]:
        raise Unfit("heic_image")
    try:
        with Image.open(io.BytesIO(data), formats=formats) as image:
            # A phone writes a JPEG with a second picture behind the first, an MPO.
            kind = "JPEG" if image.format == "MPO" else str(image.format)
            whole = kind != "JPEG" or "progressive" in image.info
            if image.width * image.height > (most_plain if whole else most):
                raise Unfit("too_many_pixels")
            if kind == "JPEG" and _has_too_many_scans(data):
                raise Unfit("too_many_pixels")
            return _reduced(image, box), kind
    except (UnidentifiedImageError, Image.DecompressionBombError):
        raise Unfit("unknown_image") from None
    except MemoryError:
        raise Unfit("too_many_pixels") from None
    # Decoders raise these for files that are cut off or damaged.
    except (OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, struct.error):
        raise Unfit("broken_image") from None


def _has_too_many_scans(data: bytes) -> bool:
    """Return whether a JPEG has more than MOST_SCANS, up to its end: phones put films behind it."""
    scans = place = 0
    while (found := _MARKER.search(data, place)) and found[1] != _END:
        place = found.end()
        if found[1] == _START:
            continue
        scans += found[1] == _SCAN
        if scans > MOST_SCANS:
            return True
        # What a part has inside, such as a small picture in EXIF data, counts for nothing.
        place += int.from_bytes(data[place : place + 2], "big")
    return False


def _reduced(image: ImageFile.ImageFile, box: tuple[int, int]) -> Image.Image:
    profile = image.info.get("icc_profile")
    if image.format in ("JPEG", "MPO"):
        # The decoder then computes a half, a quarter or an eighth of the pixels.
        image.draft(None, box)
    image.load()
    plain = _upright(image)
    plain.thumbnail(box, Image.Resampling.LANCZOS, reducing_gap=3.0)
    plain = _in_srgb(_with_eight_bits(plain), profile)
    # A comment and the profile would be written again.
    plain.info.clear()
    return plain


def _upright(image: Image.Image) -> Image.Image:
    """Return an image as its EXIF data turns it; damaged data turns nothing, as in browsers."""
    try:
        return ImageOps.exif_transpose(image)
    except (OSError, SyntaxError, ValueError, LookupError, TypeError, struct.error):
        return image


def _with_eight_bits(image: Image.Image) -> Image.Image:
    """Return an image in RGB, RGBA, L or CMYK."""
    if image.mode.startswith("I"):
        # Pillow would cut the grey values of a PNG with 16 bits instead of scaling them.
        return image.convert("I").point(lambda grey: grey / SIXTEEN_BITS).convert("L")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        lowest, _ = image.getchannel("A").getextrema()
        return image if lowest != OPAQUE else image.convert("RGB")
    return image if image.mode in ("RGB", "L", "CMYK") else image.convert("RGB")


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return an image in the colours of the web: those of phones and print are other ones."""
    wanted = "RGBA" if image.mode == "RGBA" else "RGB"
    if profile and image.mode != "L":
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(
                image, source, ImageCms.createProfile("sRGB"), outputMode=wanted
            )
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            # A profile that does not fit the pixels: browsers ignore it too.
            converted = None
        if converted is not None:
            image = converted
    return image if image.mode in (wanted, "L") else image.convert(wanted)


def _bound_resources() -> None:
    """Let the system end this process before one image uses up the machine."""
    if hasattr(os, "nice"):
        # The server has the processor first.
        os.nice(NICENESS)
    try:
        import resource
    except ImportError:
        return
    for kind, most in (("RLIMIT_AS", MEMORY_BYTES), ("RLIMIT_CPU", CPU_SECONDS)):
        limit = getattr(resource, kind)
        hard = resource.getrlimit(limit)[1]
        within = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (within, within))


def main() -> None:
    """Encode the image on the standard input."""
    _bound_resources()
    # Our own bounds of pixels hold; Pillow's would only warn.
    Image.MAX_IMAGE_PIXELS = None
    warnings.simplefilter("ignore")
    said: Mapping[str, Any]
    try:
        sizes, data = [*map(int, sys.argv[1:])], sys.stdin.buffer.read()
        said, data = encode(data, *sizes) if len(sizes) == 1 else encode_logo(data, *sizes)
    except Unfit as unfit:
        said, data = {"fault": unfit.code}, b""
    sys.stdout.buffer.write(json.dumps(said).encode() + b"\n" + data)


if __name__ == "__main__":
    main()

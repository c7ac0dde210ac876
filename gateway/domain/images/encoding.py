"""Runs the program that encodes images: a process for each image, few at a time."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.records.errors import Fault, Refusal, rate_limited
from outbox.database.fair_limit import FairSemaphore

PROGRAM = Path(__file__).with_name("encoder.py")
MOST_BYTES = 20 * 1024**2
"""Bytes of a sent file: photos of phones have up to 15 MB."""
LONGEST_SIDE = 2_048
"""Pixels of the longer side; a larger image is reduced."""
AT_ONCE = 2
"""Images that a process of the server encodes at the same time; each may need a gigabyte."""
WAITING = 8
"""Files that are received, wait or are encoded at the same time: each is whole in memory."""
EACH = 2
"""Of them those of one owner."""
SECONDS = 30.0
FAULTS = {
    "heic_image": "HEIC photos cannot be shown by most browsers; send a JPEG: on an iPhone choose "
    "Settings, Camera, Formats, Most Compatible.",
    "unknown_image": "Send an image as JPEG, PNG, WebP, AVIF or GIF.",
    "broken_image": "The image is damaged or cut off; send it again.",
    "too_many_pixels": "The image has too many pixels; send a smaller one.",
    "empty_image": "The file is empty; choose an image.",
}
FIELD = "file"
ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
"""What Python needs to start."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded image."""

    data: bytes
    media_type: str
    width: int
    height: int


class Encoder:
    """Encodes images in processes of their own, so that none can stop or fill the server."""

    def __init__(self) -> None:
        self._turns = FairSemaphore(AT_ONCE, each=1, waiting=EACH)
        self._busy = Counter[str]()

    @contextmanager
    def place(self, owner_id: str) -> Iterator[None]:
        """Hold a place for a file while it is received and encoded. Raise rate_limited."""
        if self._busy[owner_id] >= EACH or self._busy.total() >= WAITING:
            text = "Other images are being received; send this one again in a few seconds."
            raise rate_limited(text, 3)
        self._busy[owner_id] += 1
        try:
            yield
        finally:
            self._busy[owner_id] -= 1
            if not self._busy[owner_id]:
                del self._busy[owner_id]

    async def encode(self, owner_id: str, data: bytes, *sizes: int) -> Picture:
        """Return the image of a sent file, one of an owner at a time; `sizes` are those of a logo.

        Raise validation_error, unavailable.
        """
        if not data:
            raise unfit("empty_image")
        async with self._turns.place(owner_id):
            return await encoded(data, *sizes)


async def encoded(data: bytes, *sizes: int) -> Picture:
    # -P: the folder of the program must not shadow modules of the library.
    # Nor shall a decoder that is taken over find the passwords of the server in its environment.
    variables = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(PROGRAM), *map(str, sizes or (LONGEST_SIDE,)),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**variables, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )  # fmt: skip
    except OSError:
        # The machine has no memory or no process left.
        text = "The server cannot read images at the moment; send this one again."
        raise Refusal("unavailable", text, facts={"retry_after": 5}) from None
    try:
        async with asyncio.timeout(SECONDS):
            out, _ = await process.communicate(data)
    except TimeoutError:
        raise unfit("too_many_pixels") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    head, _, encoded = out.partition(b"\n")
    if process.returncode or not head:
        # The system ended it, perhaps while it wrote: it asked for too much memory or time.
        raise unfit("too_many_pixels")
    said = json.loads(head)
    if "fault" in said:
        raise unfit(said["fault"])
    return Picture(encoded, said["media_type"], said["width"], said["height"])


def unfit(code: str) -> Refusal:
    """Return the refusal of a file that is not taken."""
    text = FAULTS[code]
    return Refusal("validation_error", f"{FIELD}: {text}", faults=[Fault(FIELD, code, text)])

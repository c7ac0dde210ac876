"""Writes lines of the log to a file descriptor, and waits for nobody who reads it."""

import asyncio
import os
import select
import stat
from collections.abc import Callable, Iterator, Sequence

import msgspec

PIECE = 4096  # a pipe that polls writable takes this much without blocking (PIPE_BUF)
LONGEST = 32_768


class Sink:
    """A writer of lines to a file descriptor that never blocks.

    It writes lines of one event loop iteration together, other lines at once. When the reader has
    stopped or the disk is full, it drops and counts lines, and reports the count later; requests
    continue.
    """

    def __init__(self, descriptor: int, form: Callable[[bytes], bytes] | None = None) -> None:
        """Write each JSON line in the `form` that the function returns; by default as it is."""
        self._descriptor = descriptor
        self._form = form
        self._poll: select.poll | None = None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)
        self._most = LONGEST if self._poll is None else PIECE
        self._waiting: list[bytes] = []
        self._torn = False
        self.dropped = 0

    def write(self, line: bytes) -> int:
        """Accept one JSON line with its line end."""
        if self._form is not None:
            line = self._form(line)
        # The public function raises without a loop, which costs more than writing the line.
        loop = asyncio._get_running_loop()
        if loop is None:
            self._out([line])
        elif self._waiting:
            self._waiting.append(line)
        else:
            self._waiting = [line]
            loop.call_soon(self.let_go)
        return len(line)

    def flush(self) -> None:
        """Do nothing: structlog calls it after each line, and `let_go` writes."""

    def let_go(self) -> None:
        """Write the collected lines."""
        lines, self._waiting = self._waiting, []
        if lines:
            self._out(lines)

    def _out(self, lines: Sequence[bytes]) -> None:
        if self.dropped:
            note = {"level": "warning", "event": "log_lines_dropped", "count": self.dropped}
            line = msgspec.json.encode(note) + b"\n"
            if self._put(line if self._form is None else self._form(line)):
                self.dropped = 0
        data = b"".join(lines)
        if len(data) <= self._most:
            if not self._put(data):
                self.dropped += len(lines)
            return
        for piece in pieces(lines, self._most):
            if not self._put(b"".join(piece)):
                self.dropped += len(piece)

    def _put(self, data: bytes) -> bool:
        if self._torn:
            data = b"\n" + data
        done, size = 0, len(data)
        try:
            while done < size:
                if self._poll is not None and not self._poll.poll(0):
                    break
                done += os.write(self._descriptor, data[done : done + self._most])
        except OSError:
            pass
        self._torn = (self._torn and done == 0) or 0 < done < size
        return done == size


def pieces(lines: Sequence[bytes], most: int) -> Iterator[list[bytes]]:
    """Yield lines in groups of at most `most` bytes; a longer line is its own group."""
    piece: list[bytes] = []
    size = 0
    for line in lines:
        if piece and size + len(line) > most:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += len(line)
    if piece:
        yield piece

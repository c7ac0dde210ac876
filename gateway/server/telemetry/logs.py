"""Structured logs: one JSON object a line on standard error; standard output is for people.

`logger()` is how every module of the product gets its logger; what the libraries (and the engine,
which knows only `logging`) have to say is put into the same form.
"""

import asyncio
import logging
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO, Literal, Protocol, cast

import msgspec
import structlog

from outbox.clock import Clock

Level = Literal["debug", "info", "warning", "error"]
Log = structlog.typing.FilteringBoundLogger

PIECE = 4096  # a pipe that polls writable takes this much without blocking (PIPE_BUF)
LONGEST = 32_768


class Output(Protocol):
    """Where lines go."""

    def write(self, line: bytes) -> int: ...
    def flush(self) -> None: ...


STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Sink:
    """Writes lines to a file descriptor and never waits for it.

    Lines logged on the event loop go out together when this turn of the loop is over, others at
    once. A reader that has stopped, or a full disk, costs lines, which are counted and reported
    once there is room again; requests go on.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll: select.poll | None = None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLOUT)
        self._waiting: list[bytes] = []
        self._torn = False
        self.dropped = 0

    def write(self, line: bytes) -> int:
        """Take one line, its end included."""
        # The public function raises where there is no loop, which costs more than the line.
        loop = asyncio._get_running_loop()
        if loop is None:
            self._out([line])
        else:
            self._waiting.append(line)
            if len(self._waiting) == 1:
                loop.call_soon(self.let_go)
        return len(line)

    def flush(self) -> None:
        """For structlog, after each line; `let_go` is what writes."""

    def let_go(self) -> None:
        """Write what has gathered."""
        lines, self._waiting = self._waiting, []
        self._out(lines)

    def _out(self, lines: Sequence[bytes]) -> None:
        if self.dropped:
            note = {"level": "warning", "event": "log_lines_dropped", "count": self.dropped}
            if self._put(msgspec.json.encode(note) + b"\n"):
                self.dropped = 0
        for piece in pieces(lines, PIECE if self._poll is not None else LONGEST):
            if not self._put(b"".join(piece)):
                self.dropped += len(piece)

    def _put(self, data: bytes) -> bool:
        if self._torn:
            data = b"\n" + data
        done = 0
        try:
            while done < len(data):
                if self._poll is not None and not self._poll.poll(0):
                    break
                done += os.write(self._descriptor, data[done : done + LONGEST])
        except OSError:
            pass
        self._torn = (self._torn and done == 0) or 0 < done < len(data)
        return done == len(data)


def pieces(lines: Sequence[bytes], most: int) -> Iterator[list[bytes]]:
    """Lines in groups of at most `most` bytes; a longer line makes a group of its own."""
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


class Renderer:
    """Turns an event into a line: instant and level first, then what the caller gave."""

    def __init__(self, clock: Clock, out: Output, fixed: dict[str, Any]) -> None:
        self._clock = clock
        self._fixed = fixed
        self._second = -1
        self._prefix = ""
        self.out = out

    def __call__(self, logger: Any, name: str, event: MutableMapping[str, Any]) -> bytes:
        fields = self.head(LEVELS.get(name, name), event["event"])
        fields.update(event)
        error = fields.pop("exc_info", None)
        if error:
            fields["traceback"] = traceback_of(error)
        return line_of(fields)

    def head(self, level: str, event: str) -> dict[str, Any]:
        """What every line begins with."""
        second, micros = divmod(self._clock.wall(), 1_000_000)
        if second != self._second:
            # Formatting a date costs more than the rest of a line, and few lines need a new one.
            self._prefix = f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"
            self._second = second
        ts = f"{self._prefix}.{micros // 1000:03d}Z"
        return {"ts": ts, "level": level, "event": event, **self._fixed}


LEVELS = {"warn": "warning", "exception": "error", "critical": "error", "fatal": "error"}


class Forward(logging.Handler):
    """Gives records of the standard library's logging the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        extra = {k: v for k, v in vars(record).items() if k not in STANDARD}
        if record.exc_info:
            extra["exc_info"] = record.exc_info
        method = record.levelname.lower()
        log = structlog.get_logger()
        getattr(log, method if method in ("debug", "info", "warning") else "error")(
            _text(record), logger=record.name, **extra
        )


def configure(
    level: Level, *, clock: Clock, node: str, version: str, file: Output | None = None
) -> None:
    """Set up structlog and logging for this process; `file` is for tests."""
    out = file or Sink(sys.stderr.fileno())
    structlog.configure(
        processors=[Renderer(clock, out, {"node": node, "version": version})],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.BytesLoggerFactory(cast(BinaryIO, out)),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers = [Forward()]
    root.setLevel(level.upper())
    for chatty in ("asyncio", "apscheduler", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


def logger() -> Log:
    """A logger in the form that `configure` set."""
    return cast(Log, structlog.get_logger())


def access_log() -> Callable[[dict[str, Any]], None] | None:
    """How the middleware writes its line for each request; None when that level is off.

    The same line as `logger().info("request", …)` at a third of the cost.
    """
    settings = structlog.get_config()
    renderer = settings["processors"][-1]
    if not isinstance(renderer, Renderer):
        return lambda fields: logger().info("request", **fields)
    if logger().is_enabled_for(logging.INFO) is False:
        return None
    write = renderer.out.write

    def put(fields: dict[str, Any]) -> None:
        write(line_of(renderer.head("info", "request") | fields) + b"\n")

    return put


def line_of(fields: Mapping[str, Any]) -> bytes:
    """One JSON object without a line end, whatever the values are."""
    try:
        line = msgspec.json.encode(fields, enc_hook=repr)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        # Lone surrogates and keys that are no text: logged as they can be, never lost.
        plain = {str(k): v if isinstance(v, int | float) else _ascii(v) for k, v in fields.items()}
        line = msgspec.json.encode({_ascii(k): v for k, v in plain.items()}, enc_hook=repr)
    return line if len(line) <= LONGEST else _shortened(fields)


def traceback_of(error: Any) -> str:
    """The text of an exception given as `exc_info` of any form."""
    if error is True:
        error = sys.exc_info()
    elif isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    return str(structlog.processors.ExceptionRenderer()(None, "", {"exc_info": error})["exception"])


def _ascii(value: Any) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()


def _shortened(fields: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({_ascii(k): _ascii(v)[:1_000] for k, v in list(fields.items())[:30]})


def _text(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        # A library's format that does not fit its arguments must not break the one who logs.
        return f"{record.msg} {record.args!r}"

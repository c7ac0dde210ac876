"""The command `carteiro`: parses its arguments, runs a command and reports a failure in one line.

    return 2 if isinstance(error, Inconclusive) else 1
except Ended as end:
    return end.status
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli import tables
from gateway.cli.command_line import Command, build_parser
from gateway.cli.endings import Ended, Inconclusive
from gateway.records.errors import Refusal
from gateway.server.config import FILE_VARIABLE, Config, ConfigFaults, load, sources
from outbox import private_files
from outbox.errors import OutboxError

if TYPE_CHECKING:
    # Most commands start without the server.
    from gateway.server.parts import Parts

TRACE_VARIABLE = "CARTEIRO_TRACEBACK"
"""If this variable is set, an internal error of a command shows its traceback."""


def main(argv: Sequence[str] | None = None, parts: "Parts | None" = None) -> int:
    """Run a command and return its exit status; only this user can read the files it creates.

    `serve` makes its server of these `parts` in place of the product's.
    """
    _open_standard_files()
    arguments, unknown = build_parser().parse_known_args(argv)
    if unknown:
        arguments.parser.refuse(unknown)
    if arguments.command is None:
        arguments.parser.incomplete()
    arguments.parts = parts
    with private_files.private():
        status = _end_of(arguments)
    _drop_unwritten()
    return status


def _end_of(arguments: argparse.Namespace) -> int:
    command: Command = arguments.command
    try:
        if command.run is None:
            return _demo_of(arguments)
        config = read_config(arguments.config) if command.configured else Config()
        # Runner accepts only a coroutine, and a command may return any awaitable.
        _run(_awaited(command.run(config, arguments, _say)))
    except ConfigFaults as faults:
        for fault in faults.faults:
            _complain(fault)
        return 2
    except (OutboxError, Refusal) as error:
        _complain(str(error))
        return 2 if isinstance(error, Inconclusive) else 1
    except Ended as end:
        return end.status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has closed the pipe, so no message can reach it.
        return 1
    except UnicodeEncodeError as error:
        if os.environ.get(TRACE_VARIABLE):
            raise
        _complain(
            f"the output has the encoding {error.encoding}, which lacks characters of this text; "
            "set PYTHONIOENCODING=utf-8"
        )
        return 1
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 1
    except Exception as error:
        # A bug of this program is reported in one line too.
        if os.environ.get(TRACE_VARIABLE):
            raise
        first = str(error).partition("\n")[0]
        _complain(
            f"internal error: {type(error).__name__}: {first} ({TRACE_VARIABLE}=1 shows more)"
        )
        return 1
    return 0


def _open_standard_files() -> None:
    """Open those of input, output and errors that are closed; the event loop must not get one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            if nothing != number:
                os.close(nothing)


def _drop_unwritten() -> None:
    """Drop output that cannot be written, or Python would complain of it at its end."""
    if sys.stdout is not None and not sys.stdout.closed:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def read_config(path: str | None) -> Config:
    """Read the configuration of a command. Raise ConfigFaults."""
    first, local, *_ = *sources.files(path or os.environ.get(FILE_VARIABLE)), None, None
    return load(first, os.environ, local)


def _demo_of(arguments: argparse.Namespace) -> int:
    """Run the demo, which has its own configuration."""
    from gateway.cli.demo.tour import run

    folder = Path(arguments.folder) if arguments.folder else None
    return run(folder, once=arguments.once, port=arguments.port, breaking=arguments.breaking)


def _run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(work)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    try:
        import uvloop
    except ImportError:  # no wheel for this platform
        return asyncio.new_event_loop
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _awaited(work: Awaitable[None]) -> None:
    await work


def _say(line: str) -> None:
    print(line, flush=True)


def _complain(line: str) -> None:
    # It may repeat what a file or another program says.
    print(f"carteiro: {tables.inert(line)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

"""The product's log in tests: lines that are kept, and those that nobody writes."""

import json
from typing import Any

import structlog
from structlog.typing import EventDict


class Lines:
    """A file that keeps what is written to it."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []

    def write(self, line: bytes) -> int:
        self.raw.append(line)
        return len(line)

    def flush(self) -> None: ...

    @property
    def last(self) -> dict[str, Any]:
        assert self.raw[-1].endswith(b"\n")
        assert self.raw[-1].count(b"\n") == 1
        line: dict[str, Any] = json.loads(self.raw[-1])
        return line


def only_warnings() -> None:
    """Write no line below a warning: one for each request and delivery costs as much as a query."""
    structlog.reset_defaults()
    structlog.configure(processors=[_warning, *structlog.get_config()["processors"]])


def _warning(_: Any, level: str, event: EventDict) -> EventDict:
    if level in ("debug", "info"):
        raise structlog.DropEvent
    return event

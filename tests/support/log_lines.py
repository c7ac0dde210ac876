"""A place for log lines that keeps them."""

import json
from typing import Any


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

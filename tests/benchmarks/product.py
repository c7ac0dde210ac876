"""`carteiro serve` as the measured process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.children import Child

ADDRESS = re.compile(r"http://[\w.\[\]]+:(\d+)")


class Product(Child):
    """One process of it; `port` is where it listens."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        role: str = "all",
    ) -> None:
        super().__init__(
            "gateway", "serve", "--role", role,
            log=folder / "serve.log", environment=environment, folder=folder,
        )  # fmt: skip
        found = ADDRESS.search(self.line())
        assert found is not None
        self.port = int(found[1])


@contextmanager
def product(
    environment: Mapping[str, str],
    folder: Path,
    role: str = "all",
) -> Iterator[Product]:
    """Serve until the block ends."""
    running = Product(environment, folder, role)
    try:
        yield running
    finally:
        running.end()

"""`carteiro serve` as the measured process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.children import ROOT, Child

ADDRESS = re.compile(r"http://[\w.\[\]]+:(\d+)")


class Product(Child):
    """One process of it; `port` is where it listens."""

    def __init__(
        self,
        environment: Mapping[str, str],
        folder: Path,
        role: str = "all",
        module: str = "gateway",
        root: Path = ROOT,
    ) -> None:
        super().__init__(
            module, "serve", "--role", role,
            log=folder / "serve.log", environment=environment, folder=folder, root=root,
        )  # fmt: skip
        found = ADDRESS.search(self.line())
        assert found is not None
        self.port = int(found[1])


@contextmanager
def product(
    environment: Mapping[str, str],
    folder: Path,
    role: str = "all",
    module: str = "gateway",
    root: Path = ROOT,
) -> Iterator[Product]:
    """Serve until the block ends; `module` replaces `python -m gateway`, `root` this tree."""
    running = Product(environment, folder, role, module, root)
    try:
        yield running
    finally:
        running.end()

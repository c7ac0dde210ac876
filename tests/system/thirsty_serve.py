"""The product with one rule broken: clients and idle connections take all file descriptors.

Run in place of `python -m gateway`.
"""

from __future__ import annotations

import sys
from functools import partial
from math import inf

from gateway.__main__ import main
from gateway.cli import serve
from gateway.server.config import Config
from gateway.server.parts import Parts
from outbox.sending.send import Sender


def unfitted(config: Config, descriptors: int) -> Config:
    """Return `config`, whatever there is."""
    return config


if __name__ == "__main__":
    setattr(serve, "fitted", unfitted)  # noqa: B010 - it is not exported
    sys.exit(main(parts=Parts(sender=partial(Sender, scarce_from=inf))))

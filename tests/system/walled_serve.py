"""The product with a broken rule: deliveries are due by the wall clock.

Run in place of `python -m gateway`, on SQLite.
"""

from __future__ import annotations

import sys

from gateway.__main__ import main
from outbox.database.sqlite.file import File

if __name__ == "__main__":
    File.due_now = lambda self: self._clock.wall()  # type: ignore[method-assign] # the rule
    sys.exit(main())

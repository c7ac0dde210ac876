"""The product with one rule broken: a delete handles all dependants in its transaction.

Run in place of `python -m gateway`.
"""

from __future__ import annotations

import sys

from gateway.__main__ import main
from gateway.records import cascades

if __name__ == "__main__":
    cascades.MOST = 10**9
    sys.exit(main())

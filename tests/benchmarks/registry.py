"""Every benchmark by its name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.benchmarks.cells import cells
from tests.benchmarks.console_lists import console_lists
from tests.benchmarks.end_to_end import end_to_end, end_to_end_postgres
from tests.benchmarks.figures import Verdict
from tests.benchmarks.gauges import gauges
from tests.benchmarks.growth import growth, growth_postgres
from tests.benchmarks.hanging import hanging
from tests.benchmarks.idle_commit import idle_commit
from tests.benchmarks.lists import lists
from tests.benchmarks.load_generator import load_generator
from tests.benchmarks.numbering import numbering
from tests.benchmarks.onset import onset
from tests.benchmarks.pages import pages
from tests.benchmarks.parked import parked
from tests.benchmarks.quiet_day import quiet_day
from tests.benchmarks.read_path import read_path
from tests.benchmarks.send_path import send_path
from tests.benchmarks.sizes import Size
from tests.benchmarks.slow_receivers import slow_receivers
from tests.benchmarks.write_path import write_path

Benchmark = Callable[[Size], Coroutine[Any, Any, Verdict]]
BENCHMARKS: dict[str, Benchmark] = {
    "load_generator": load_generator,
    "write_path": write_path,
    "send_path": send_path,
    "idle_commit": idle_commit,
    "quiet_day": quiet_day,
    "numbering": numbering,
    "cells": cells,
    "end_to_end": end_to_end,
    "end_to_end_postgres": end_to_end_postgres,
    "hanging": hanging,
    "slow_receivers": slow_receivers,
    "onset": onset,
    "parked": parked,
    "gauges": gauges,
    "read_path": read_path,
    "pages": pages,
    "console_lists": console_lists,
    "lists": lists,
    "growth": growth,
    "growth_postgres": growth_postgres,
}

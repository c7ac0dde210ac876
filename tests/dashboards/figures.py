"""Numbers as Grafana writes them in its units."""

from __future__ import annotations

import math
from collections.abc import Sequence

SCALES: dict[str, Sequence[tuple[float, str]]] = {
    "s": (
        (86_400, " d"), (3_600, " h"), (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " µs"),
    ),
    "bytes": ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB"), (1, " B")),
    "none": ((1, ""),),
    "short": ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"), (1, "")),
    "reqps": ((1e3, " K req/s"), (1, " req/s")),
    "ops": ((1e3, " K ops/s"), (1, " ops/s")),
}  # fmt: skip


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """Return a number with its unit, scaled to be read."""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)}%"
    scales = SCALES[unit]
    fitting = [scale for scale in scales if abs(value) >= scale[0]] or [scales[-1]]
    size, name = fitting[0] if value else (1, dict(scales)[1])
    return f"{_digits(value / size, decimals)}{name}"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    digits = 0 if abs(value) >= 100 or value == round(value) else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"

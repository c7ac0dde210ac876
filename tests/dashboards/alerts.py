"""The alerts of dashboards/alerts.yml, read by their form: every line there is written alike."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.architecture.tree import ROOT

FILE = ROOT / "dashboards" / "alerts.yml"
ALERT = re.compile(
    r"^      - alert: (?P<name>\w+)\n"
    r"        expr:(?P<expr> [^|].*|(?: \|\n(?:          .*\n)+?))\n?"
    r"(?:        for: (?P<wait>\w+)\n)?"
    r"        labels:\n(?P<labels>(?:          .*\n)+)"
    r"        annotations:\n(?P<annotations>(?:          .*(?:\n|\Z))+)",
    re.MULTILINE,
)
ENTRY = re.compile(r"^          (\w+): (?:>-\n)?((?:.*\n?)(?:^            .*\n?)*)", re.MULTILINE)


@dataclass(frozen=True)
class Alert:
    """An alert; `wait` is how long it must hold, as in `10m`, or empty."""

    name: str
    expr: str
    wait: str
    labels: dict[str, str]
    annotations: dict[str, str]


def _entries(text: str) -> dict[str, str]:
    return {name: " ".join(value.split()) for name, value in ENTRY.findall(text)}


def _read() -> tuple[Alert, ...]:
    text = FILE.read_text()
    found = tuple(
        Alert(
            match["name"], " ".join(match["expr"].replace("|", "", 1).split()),
            match["wait"] or "", _entries(match["labels"]), _entries(match["annotations"]),
        )
        for match in ALERT.finditer(text)
    )  # fmt: skip
    assert len(found) == text.count("- alert:"), "an alert is written in another form"
    return found


ALERTS = _read()

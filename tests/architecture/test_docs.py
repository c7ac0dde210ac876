"""The docs are complete: each setting, command, metric, route and event of the code."""

from __future__ import annotations

import re
import tomllib
from typing import get_type_hints

from prometheus_client.metrics import MetricWrapperBase

from gateway import texts
from gateway.cli.command_line import COMMANDS
from gateway.domain.catalogue import EVENTS, RESOURCES
from gateway.rest.document.deliveries import body_of
from gateway.rest.errors import STATUS
from gateway.rest.routes import ROUTES
from gateway.server.config import SECTIONS
from gateway.server.telemetry.backlog_series import BacklogSeries
from gateway.server.telemetry.certificate_series import CertificateSeries
from gateway.server.telemetry.meters import Scraped
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.webhook_series import WebhookSeries
from outbox.clock import SystemClock
from outbox.events.body import encode
from tests.architecture.tree import ROOT

EN = texts.of("en")


def page(name: str) -> str:
    [path] = (ROOT / "docs").rglob(f"{name}.md")
    return path.read_text()


def test_every_setting_is_in_config_toml_with_its_meaning() -> None:
    parts = re.split(r"^\[(\w+)\]$", (ROOT / "config.toml").read_text(), flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert sections.keys() == SECTIONS.keys()
    for section, struct in SECTIONS.items():
        lines = sections[section].splitlines()
        for key in get_type_hints(struct):
            places = [i for i, line in enumerate(lines) if re.match(rf"#? ?{key} =", line)]
            assert len(places) == 1, f"[{section}] {key}"
            said = lines[places[0] - 1].startswith("# ") or "  # " in lines[places[0]]
            assert said, f"[{section}] {key} has no comment"


def exported() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return metric name -> type and labels, without the client library's own collectors."""
    labels = ("version", "revision", "python", "sqlite", "backend", "console")
    build = dict.fromkeys(labels, "")
    metrics = Metrics(clock=SystemClock(), webhook_series=1, build=build)
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for meter in vars(metrics.registry)["_collector_to_names"]:
        if isinstance(meter, MetricWrapperBase):
            family = next(iter(meter.describe()))
            name = family.name + ("_total" if family.type == "counter" else "")
            found[name] = (family.type, vars(meter)["_labelnames"])
        elif isinstance(meter, Scraped | WebhookSeries | BacklogSeries | CertificateSeries):
            for family in meter.collect():
                name = family.name + ("_total" if family.type == "counter" else "")
                found[name] = (family.type, tuple(vars(family)["_labelnames"]))
    return found


def test_the_metrics_page_equals_what_is_exported() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| ([^|]+) \| \S",
        (ROOT / "docs/reference/metrics.md").read_text(),
        re.MULTILINE,
    )
    told = {
        name: (kind, () if labels == "–" else tuple(labels.split(", ")))
        for name, kind, labels in rows
    }
    assert told == exported()


def test_the_events_page_equals_the_catalogue() -> None:
    rows = re.findall(
        r"^\| `(\w+\.\w+)` \| [^|]+ \| ([^|]+) \|$",
        (ROOT / "docs/reference/events.md").read_text(),
        re.MULTILINE,
    )
    assert {name: tuple(fields.split(", ")) for name, fields in rows} == EVENTS
    assert [name for name, _ in rows] == list(EVENTS)


def test_the_events_page_names_the_fields_that_filters_can_use() -> None:
    part = page("events").partition("## Filters on the record")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \|$", part, re.MULTILINE)[1:]
    told = {noun: tuple(fields.split(", ")) for noun, fields in rows}
    assert told == {one.noun: tuple(one.filterable) for one in RESOURCES if one.filterable}


def test_the_events_page_has_an_example_of_each_as_the_code_makes_it() -> None:
    told = re.findall(
        r"^`(\w+\.\w+)`\n\n```json\n(.+)\n```$",
        (ROOT / "docs/reference/events.md").read_text(),
        re.MULTILINE,
    )
    assert dict(told) == {event: encode(body_of(event).example).decode() for event in EVENTS}
    assert [event for event, _ in told] == list(EVENTS)


def test_the_events_page_names_every_header() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    source = (ROOT / "outbox/sending/request.py").read_text()
    sent = set(re.findall(r'"((?:X-Webhook|webhook)-[\w-]+)"', source))
    assert sent
    assert sorted(name for name in sent if f"`{name}`" not in page) == []


def test_the_api_page_equals_the_routes() -> None:
    told = re.findall(
        r"^\| `([A-Z]+) (/api\S*)` \|", (ROOT / "docs/reference/rest-api.md").read_text(), re.M
    )
    assert sorted(told) == sorted((method, path) for method, path, _ in ROUTES)


def test_the_api_page_names_every_error_under_its_status() -> None:
    told = {
        code: int(status)
        for status, codes in re.findall(
            r"^\| (\d{3}) \| (.+) \|$", (ROOT / "docs/reference/rest-api.md").read_text(), re.M
        )
        for code in re.findall(r"`(\w+)`", codes)
    }
    assert told == dict(STATUS)


def test_the_commands_page_equals_the_commands() -> None:
    told = re.findall(r"^\| `carteiro ([a-z -]+)` \|", page("commands"), re.M)
    assert sorted(told) == sorted(command.words for command in COMMANDS)


def test_the_readme_names_commands_that_there_are() -> None:
    told = re.findall(r"carteiro ([a-z]+(?: [a-z-]+)?)`", (ROOT / "README.md").read_text())
    assert told
    assert set(told) <= {command.words for command in COMMANDS}


def test_the_configuration_page_equals_the_settings() -> None:
    parts = re.split(r"^## (\w+)$", page("configuration"), flags=re.MULTILINE)[1:]
    told = {
        f"{section}.{key}": (default, meaning)
        for section, text in zip(parts[::2], parts[1::2], strict=True)
        for key, default, meaning in re.findall(
            r"^\| `(\w+)` \| `([^`]+)` \| (\S.*) \|$", text, re.MULTILINE
        )
    }
    settings = {
        f"{section}.{key}": getattr(struct(), key)
        for section, struct in SECTIONS.items()
        for key in get_type_hints(struct)
    }
    assert told.keys() == settings.keys()
    assert {key: tomllib.loads(f"x = {default}")["x"] for key, (default, _) in told.items()} == {
        key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()
    }
    for key, (_, meaning) in told.items():
        units = [each for each in ("bytes", "seconds", "hours", "days") if key.endswith(f"_{each}")]
        assert all(unit in meaning.lower() for unit in units), key


def test_the_troubleshooting_page_has_every_outcome_and_failed_end() -> None:
    text = page("troubleshoot")
    outcomes = {key.removeprefix("outcome.") for key in EN if key.startswith("outcome.")}
    section = re.search(r"^## By outcome$(.*?)^## ", text, re.M | re.S)
    ends = re.search(r"^## By end of a delivery$(.*?)^## ", text, re.M | re.S)
    assert section
    assert ends
    assert set(re.findall(r"^\| `(\w+)` \|", section[1], re.M)) == outcomes
    told = set(re.findall(r"^\| `(\w+)` \|", ends[1], re.M))
    assert told == {"exhausted", "gone", "cancelled", "dead"}
    assert all(f"state.{state}" in EN for state in told)


def test_the_contributing_page_equals_the_make_targets() -> None:
    told = re.findall(r"^\| `make ([a-z-]+)` \|", page("CONTRIBUTING"), re.M)
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    assert sorted(told) == sorted(set(targets) - {"help"})

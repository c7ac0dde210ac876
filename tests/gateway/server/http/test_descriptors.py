"""Bounds that fit into the process's file descriptors."""

import resource

import pytest

from gateway.cli import serve
from gateway.server.config import Config
from gateway.server.http.descriptors import fitted
from gateway.server.telemetry import logs


def test_enough_descriptors_change_nothing() -> None:
    config = Config()
    for descriptors in (4_096, resource.RLIM_INFINITY):
        assert fitted(config, descriptors) is config


def test_the_server_fits_its_bounds_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int]] = []

    class Log:
        def warning(self, event: str, *, descriptors: int, **bounds: int) -> None:
            said.append((event, descriptors))

    monkeypatch.setattr(logs, "logger", Log)
    for descriptors in (4_096, 256):
        monkeypatch.setattr(serve, "raise_limit", lambda most=descriptors: most)
        config = Config()
        assert serve._within_descriptors(config) == fitted(config, descriptors)
    assert said == [("few_descriptors", 256)]

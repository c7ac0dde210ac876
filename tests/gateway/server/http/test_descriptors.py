"""Bounds that fit into the process's file descriptors."""

import resource

import pytest

from gateway.cli import serve
from gateway.server.config import Config
from gateway.server.http.admission import PROBES
from gateway.server.http.descriptors import OWN, fitted
from gateway.server.telemetry import logs


def test_enough_descriptors_change_nothing() -> None:
    config = Config()
    for descriptors in (4_096, resource.RLIM_INFINITY):
        assert fitted(config, descriptors) is config


def test_clients_and_sends_share_what_there_is() -> None:
    for descriptors in (1_024, 512, 256):
        few = fitted(Config(), descriptors)
        taken = few.limits.connections + few.delivery.slots
        assert taken + PROBES + OWN + Config().database.pool_size == descriptors
        assert few.delivery.slots == min(256, taken // 2)
        assert few.limits.connections_per_address == -(-few.limits.connections // 2)
    # With hardly any there is one place each.
    few = fitted(Config(), 20)
    assert (few.limits.connections, few.limits.connections_per_address) == (1, 1)
    assert few.delivery.slots == 1


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

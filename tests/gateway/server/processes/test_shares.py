"""The part of each process in the bounds of a node."""

from msgspec import structs

from gateway.server.config import Config, Limits, Server
from gateway.server.processes.shares import share_of


def config(processes: int, **limits: int) -> Config:
    return Config(server=Server(processes=processes), limits=Limits(**limits))


def test_bounds_are_divided_and_rates_are_not() -> None:
    whole = config(4, connections=1_001)
    part = share_of(whole, "all")
    assert part.limits == structs.replace(
        whole.limits, connections=251, connections_per_address=125,
        request_bytes=16_777_216, answer_bytes=33_554_432,
    )  # fmt: skip
    assert part.delivery.slots == whole.delivery.slots
    assert share_of(whole, "worker").delivery.slots == 64
    assert share_of(config(1), "worker") == config(1)


def test_the_largest_body_still_fits_into_the_half_of_one_address() -> None:
    part = share_of(config(64, body_bytes=8_000_000), "api")
    assert part.limits.request_bytes == 16_000_000
    # Unless it did not fit before.
    assert share_of(config(64, request_bytes=1_000), "api").limits.request_bytes == 1_000

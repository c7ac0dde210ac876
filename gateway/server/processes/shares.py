"""What each of a node's processes gets of the settings that bound the whole node."""

from msgspec import structs

from gateway.server.config import Config
from gateway.server.program import Role


def share_of(config: Config, role: Role) -> Config:
    """Return the configuration of one process: an equal part of each bound, rounded up.

    Rates are not divided: all processes take from the same buckets
    (gateway.server.processes.shared_counters).
    """
    count = config.server.processes
    limits = config.limits
    # A body of the largest size must still fit into the half that one address may use.
    requests = max(_part(limits.request_bytes, count), 2 * limits.body_bytes)
    bounds = structs.replace(
        limits,
        request_bytes=min(requests, limits.request_bytes),
        answer_bytes=_part(limits.answer_bytes, count),
        connections=_part(limits.connections, count),
        connections_per_address=_part(limits.connections_per_address, count),
    )
    # Only with this role all processes send.
    slots = config.delivery.slots
    if role == "worker":
        slots = _part(slots, count)
    return structs.replace(
        config, limits=bounds, delivery=structs.replace(config.delivery, slots=slots)
    )


def _part(whole: int, count: int) -> int:
    return -(-whole // count)

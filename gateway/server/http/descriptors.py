"""Fits the bounds of a process into its file descriptors: clients must not take those of sends."""

import resource

from msgspec import structs

from gateway.server.config import Config
from gateway.server.http.admission import PROBES

OWN = 64
"""Descriptors for the database, the log, listening and name look-ups, with some to spare."""


def raise_limit() -> int:
    """Raise this process's limit of descriptors as far as it may, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        # Some systems name a hard limit that they do not grant.
        return soft
    return hard


def fitted(config: Config, descriptors: int) -> Config:
    """Return `config` with as many connections and slots as `descriptors` suffice for.

    Where they do not suffice for both, slots get up to half of them.
    """
    if descriptors == resource.RLIM_INFINITY:
        return config
    limits, delivery = config.limits, config.delivery
    room = max(descriptors - OWN - config.database.pool_size - PROBES, 2)
    if limits.connections + delivery.slots <= room:
        return config
    slots = min(delivery.slots, room // 2)
    connections = min(limits.connections, room - slots)
    # An address keeps its share.
    per_address = -(-limits.connections_per_address * connections // limits.connections)
    return structs.replace(
        config,
        limits=structs.replace(
            limits, connections=connections, connections_per_address=per_address
        ),
        delivery=structs.replace(delivery, slots=slots),
    )

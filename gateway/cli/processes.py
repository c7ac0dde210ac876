"""`carteiro serve` with several processes: the supervisor, and each process that it starts."""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from gateway.cli.port import cannot_listen, must_be_free, stop_on_signals
from gateway.server.config import Config
from gateway.server.processes.channel import Gone
from gateway.server.processes.member import Member
from gateway.server.processes.shared_counters import shared_memory
from gateway.server.processes.shares import share_of
from gateway.server.processes.supervisor import Supervisor
from gateway.server.program import Role, program_version
from gateway.server.telemetry import logs
from outbox.clock import SystemClock
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids

if TYPE_CHECKING:
    # Only the processes load the server.
    from gateway.server.parts import Parts


async def serve_processes(config: Config, role: Role) -> None:
    """Supervise the processes until SIGTERM or SIGINT. Raise CannotStart."""
    clock, ids = SystemClock(), Ids()
    logs.configure(
        config.logging.level, clock=clock, node=ids.new(clock.wall()), version=program_version(),
        form=config.logging.format,
    )  # fmt: skip
    stopping = asyncio.Event()
    await must_be_free(config)
    try:
        # Not listening before a process is ready. With SO_REUSEPORT each process would have a queue
        # of its own, whose connections are lost with it and hang while it hangs.
        bound = await asyncio.get_running_loop().create_server(
            asyncio.Protocol,
            config.server.host,
            config.server.port,
            start_serving=False,
        )
    except OSError as error:
        raise CannotStart(cannot_listen(config, error)) from None
    port = bound.sockets[0].getsockname()[1]
    sockets = [each.fileno() for each in bound.sockets]
    share = share_of(config, role)
    share = structs.replace(share, server=structs.replace(share.server, port=port))
    supervisor = Supervisor(share, role, shared_memory(), clock, stopping, sockets)
    stop_on_signals(partial(_end, supervisor), stopping)
    try:
        await supervisor.run(bound.close)
    finally:
        bound.close()
    logs.logger().info("stopped")


async def serve_as_member(
    member: Member, role: Role, say: Callable[[str], None], parts: "Parts | None" = None
) -> None:
    """Serve as one of the processes; the supervisor reports a failure to start."""
    # The supervisor does without the server, which is most of the program. The processes load it
    # together, before they wait for their turn to start.
    from gateway.cli.serve import serve

    start = await member.join()
    try:
        await serve(start.config, role, say, member, parts)
    except OutboxError as error:
        await member.tell("failed", str(error).encode())
        sys.exit(1)
    except Gone:  # the supervisor has ended
        sys.exit(1)
    finally:
        await member.close()


def _end(supervisor: Supervisor) -> None:
    """End at once. The next start rescues deliveries in flight."""
    supervisor.kill()
    os._exit(1)

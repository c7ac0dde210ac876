"""The gateway of the demo: it is our own process, never another server on the same port."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from gateway.cli.demo.demo_gateway import DemoFault, Gateway

# The test starts a process.
pytestmark = pytest.mark.slow


async def ready(request: web.Request) -> web.Response:
    return web.Response(text="ready")


async def test_another_server_on_the_port_is_not_taken_for_the_gateway(tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_get("/readyz", ready)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        # The log of an earlier demo in the same folder is not evidence of a start.
        (tmp_path / "gateway.log").write_text(
            f"Carteiro is ready; console at http://127.0.0.1:{port}/console\n"
        )
        gateway = Gateway(tmp_path, receiver_port=1, port=port)
        try:
            with pytest.raises(DemoFault, match=rf"127\.0\.0\.1:{port} is already in use"):
                await gateway.start()
        finally:
            await gateway.stop()
        # A busy port is noticed before the database is created.
        assert not (tmp_path / "carteiro.db").exists()
    finally:
        await runner.cleanup()

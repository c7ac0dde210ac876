"""The address at which people and programs reach this server."""

from gateway.server.config import Config

ANY = {"": "localhost", "0.0.0.0": "localhost", "::": "localhost"}  # noqa: S104 - only shown


def public_address(config: Config, port: int) -> str:
    """Return the address of this server: `[server] public_url`, else host and port."""
    if config.server.public_url:
        return config.server.public_url.rstrip("/")
    host = ANY.get(config.server.host, config.server.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""Makes the global ids of records, by which the storefront names them."""

from base64 import urlsafe_b64encode


def global_id(kind: str, record_id: str) -> str:
    """Return the global id of a record; `kind` is its GraphQL type."""
    return urlsafe_b64encode(f"{kind}:{record_id}".encode()).decode().rstrip("=")

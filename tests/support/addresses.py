"""Visitors with addresses of their own, as a trusted proxy on loopback names them."""

from tests.support.shop import Browser, Shop


def visitor_at(shop: Shop, address: str) -> Browser:
    """Return a new visitor whose requests come from an address."""
    browser = shop.browser()
    browser.http.headers["X-Forwarded-For"] = address
    return browser


def honest(n: int) -> str:
    """Return the address of the honest buyer `n`, each in a network of its own."""
    return f"100.{64 + n // 200}.{n % 200}.7"

"""Carts of a store's visitors and customers.

`rows` stores them, `contents` computes what they hold and cost now, `changes` are the visitor's own
changes, and `lives` is how carts end.
"""

from gateway.domain.storefront.carts.cart_lifecycle import adopt, close, purge
from gateway.domain.storefront.carts.contents import Contents, current

__all__ = ["Contents", "adopt", "close", "current", "purge"]

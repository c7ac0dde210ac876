"""The page on which a buyer pays an order by card: its address, with a token that the store signs.

The token is a JWT by HS256, keyed with the text of the payment secret, so that the adapter of the
provider can check it without asking us.
"""

from joserfc.jwk import OctKey

from gateway.domain.storefront.stores import payment_page
from gateway.domain.storefront.visitors import compact_jws
from gateway.records.record import Record
from gateway.records.values import numbers

ALGORITHM = "HS256"
ISSUER = "carteiro"


def has_page(store: Record, order: Record) -> bool:
    """Return whether an order is paid on the page of its store."""
    method, status = order["payment_method"], order["status"]
    return method == "card" and status == "pending" and store["checkout_url"] is not None


def address(store: Record, order: Record, secret: str) -> str:
    """Return the address of the page for an order that has one."""
    values = {"orderId": order.id, "orderNumber": order["number"], "token": token(order, secret)}
    return payment_page.fill(store["checkout_url"], values)


def token(order: Record, secret: str) -> str:
    """Return the signed token of an order, which is always the same."""
    claims = {
        "iss": ISSUER,
        "aud": order["store_id"],
        "sub": order.id,
        "orderNumber": order["number"],
        "amount": numbers.show_money(order["total"]),
        "currency": order["currency"],
        "iat": order["created_at"] // 1_000_000,
        "exp": order["expires_at"] // 1_000_000,
    }
    key = OctKey.import_key(secret.encode())
    return compact_jws.sign({"alg": ALGORITHM, "typ": "JWT"}, claims, key)

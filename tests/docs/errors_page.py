"""Writes docs/reference/errors.md from the closed list of error codes."""

from collections.abc import Iterator, Mapping

from gateway.graphql.errors import CODES as UPPER
from gateway.records.errors import CODES
from gateway.rest.errors import STATUS

FIXES: Mapping[str, tuple[str, str]] = {
    "invalid_json": ("the body is not JSON", "send valid JSON in UTF-8"),
    "validation_error": ("a field, header or parameter is wrong", "correct each one in `details`"),
    "invalid_reference": ("a field has the id of no record", "create that record first"),
    "invalid_cnpj": ("the CNPJ has a wrong form or check digit", "correct the CNPJ"),
    "unauthenticated": (
        "the API key, token or session is missing, invalid, revoked or expired",
        "send a valid one",
    ),
    "conflicting_credentials": ("the request has two credentials", "send one"),
    "forbidden": ("the credential may not do this", "use a key with the scope, or the owner's key"),
    "not_found": ("there is no such record or path", "check the id and the path"),
    "method_not_allowed": ("the path does not take this method", "use one of `Allow`"),
    "conflict": ("the state of the record does not allow this", "read the record again"),
    "invalid_transition": ("the record cannot go to this state", "choose a state in `allowed`"),
    "idempotency_in_progress": (
        "a request with this `Idempotency-Key` still runs",
        "repeat it after `Retry-After`",
    ),
    "precondition_failed": (
        "the record has changed since you read it",
        "read it again and repeat your change with the new `ETag`",
    ),
    "payload_too_large": ("the body is too large", "send less"),
    "unsupported_media_type": (
        "the body has another media type or encoding",
        "send `application/json` in UTF-8",
    ),
    "idempotency_mismatch": (
        "this `Idempotency-Key` belongs to another request",
        "use a new key for a new request",
    ),
    "rate_limited": ("too many requests", "wait as long as `Retry-After` or `retryAfter` says"),
    "internal_error": ("an error of Carteiro", "report it with the `requestId`"),
    "unavailable": ("the database is unavailable; nothing was written", "repeat the request"),
    "outcome_unknown": (
        "the database failed during the commit; the write may have been made",
        "repeat it with the same `Idempotency-Key`, or read before you repeat",
    ),
    "moving": ("the account moves to another installation; nothing was written", "repeat later"),
    "misdirected": (
        "another cell has the account or the store; nothing was written",
        "send it to the `url` of the body; the header `X-Carteiro-Cell` names the cell",
    ),
    "store_not_found": ("no active store has this hostname", "check `hostname`"),
    "product_not_found": ("the store shows no such product", "remove it from the page"),
    "email_already_exists": ("an account has this email address", "sign in, or use another one"),
    "password_too_short": ("the password is too short", "ask for a longer one"),
    "invalid_credentials": ("email or password is wrong", "ask again"),
    "invalid_token": ("a token is wrong, expired or of another store", "sign in again"),
    "account_link_required": (
        "an account has this email, and the provider does not prove the email",
        "sign in with the password, then call `clientLinkIdp`",
    ),
    "insufficient_stock": ("the stock has fewer items", "offer what is left"),
    "quantity_limit": ("more than 999 items in a line or 100 lines in a cart", "offer less"),
    "coupon_not_found": ("the store has no active coupon with this code", "show the reason"),
    "coupon_expired": ("`endsAt` of the coupon has passed", "show the reason"),
    "coupon_not_applicable": (
        "the coupon has not started, the cart is below its `minTotal`, or, at the checkout, a "
        "modal issued it to another email",
        "show the reason",
    ),
    "coupon_usage_limit": (
        "every use of the coupon is taken, or the customer has used it as often as it allows",
        "show the reason",
    ),
    "invalid_cep": ("the CEP does not have eight digits", "ask for another one"),
    "shipping_required": ("the cart needs a shipping option", "call `shoppingCartSetShipping`"),
    "shipping_unavailable": ("no shipping rule has this CEP", "ask for another address"),
    "total_changed": (
        "the cart costs more than the buyer agreed to; nothing was ordered",
        "show `shoppingCart` of `extensions`, and ask the buyer again",
    ),
    "cart_empty": ("the cart has no lines", "add a product"),
    "unpaid_limit": (
        "too many unpaid orders of this email, address or network",
        "pay or cancel one, or wait `retryAfter` seconds",
    ),
    "discount_modal_not_found": ("no active modal has this id", "hide the modal"),
    "invalid_api_version": ("`X-API-Version` is not a date", "correct the header"),
    "query_too_complex": ("the document exceeds a limit", "ask for less"),
    "persisted_query_not_supported": ("the request has no `query`", "send the document"),
    "execution_timeout": ("the operation took too long; nothing was written", "ask for less"),
    "origin_not_allowed": ("this origin may not call the store", "add it to `allowedOrigins`"),
}


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    yield "| code in REST | status | code in GraphQL | means | do |"
    yield "| --- | --- | --- | --- | --- |"
    for code in CODES:
        means, fix = FIXES[code]
        rest = (f"`{code}`", str(STATUS[code])) if code in STATUS else ("–", "–")
        yield f"| {' | '.join((*rest, f'`{UPPER.get(code, code.upper())}`', means, fix))} |"

"""Lists the error codes of refusals. Each door renders them in its own format."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from outbox.database.transaction import Commits
from outbox.errors import DatabaseUnavailable, OutcomeUnknown, OwnerElsewhere

CODES: Final = (
    "invalid_json",
    "validation_error",
    "invalid_reference",
    "invalid_cnpj",
    "unauthenticated",
    "conflicting_credentials",
    "forbidden",
    "not_found",
    "method_not_allowed",
    "conflict",
    "invalid_transition",
    "idempotency_in_progress",
    "precondition_failed",
    "payload_too_large",
    "unsupported_media_type",
    "idempotency_mismatch",
    "rate_limited",
    "internal_error",
    "unavailable",
    "outcome_unknown",
    "moving",
    "misdirected",
    # Of the storefront.
    "store_not_found",
    "product_not_found",
    "email_already_exists",
    "password_too_short",
    "invalid_credentials",
    "invalid_token",
    "account_link_required",
    "insufficient_stock",
    "quantity_limit",
    "coupon_not_found",
    "coupon_expired",
    "coupon_not_applicable",
    "coupon_usage_limit",
    "invalid_cep",
    "shipping_required",
    "shipping_unavailable",
    "total_changed",
    "cart_empty",
    "unpaid_limit",
    "discount_modal_not_found",
    "invalid_api_version",
    "query_too_complex",
    "persisted_query_not_supported",
    "execution_timeout",
    "origin_not_allowed",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in one field: `field` as the client wrote it, `text` names the fix in English.

    `values` are the parameters of the sentence: the text has a place `{name}` for each, and other
    languages have a text of their own for these names.
    """

    field: str
    code: str
    text: str
    values: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def message(self) -> str:
        """The text in English with its values."""
        return self.text.format(**self.values) if self.values else self.text

    @property
    def sentence(self) -> str:
        """The message with its field, unless it starts with the field's name."""
        starts = self.message.startswith(f"{self.field} ")
        return self.message if starts else f"{self.field}: {self.message}"


class Refusal(Exception):
    """The refusal of a request. `code` is one of CODES; `message` is for the client's developer.

    `facts` are for programs: `retry_after` (seconds), `etag`, `allow` (methods), `rate_limit`,
    `rate_limit_policy`, `preference_applied`, `ignored` (names of fields), `cell` and `url` (of the
    cell that has the account), and facts of few codes, such as `allowed` and `shopping_cart`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        faults: Sequence[Fault] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        assert code in CODES, f"{code} is not in CODES"
        self.code = code
        self.message = message
        self.faults = tuple(faults)
        self.facts = dict(facts or {})


def rate_limited(text: str, seconds: float, **facts: Any) -> Refusal:
    """Return the refusal of one thing too many; the client may try again after `seconds`."""
    facts["retry_after"] = max(1, math.ceil(seconds))
    return Refusal("rate_limited", text, facts=facts)


def misdirected(cell: str, url: str) -> Refusal:
    """Return the refusal of a request for an account that another cell has."""
    text = f"This account is in the cell {cell}; send the request to {url}."
    return Refusal("misdirected", text, facts={"cell": cell, "url": url})


def moving() -> Refusal:
    """Return the refusal of a request for an account that is moving."""
    text = "Your data is moving to another installation; try again."
    return Refusal("moving", text, facts={"retry_after": 1})


def of_database(error: DatabaseUnavailable, noted: Commits | None, advice: str) -> Refusal:
    """Return the refusal of a request that the database has failed; `noted` are its commits.

    `unavailable` says that nothing was written. Where that is not certain, it is outcome_unknown
    with `advice`: what to do now, in the terms of the door.
    """
    if isinstance(error, OutcomeUnknown) or (noted is not None and noted.any):
        code, text = "outcome_unknown", f"It may have been written. {advice}"
    elif isinstance(error, OwnerElsewhere):
        return moving() if error.home is None else misdirected(*error.home)
    else:
        code, text = "unavailable", "The database is unavailable; try again."
    return Refusal(code, text, facts={"retry_after": 1})

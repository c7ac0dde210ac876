"""What a door may refuse, as a closed list of codes, and the one place that gives them a status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STATUS: Mapping[str, int] = {
    "invalid_json": 400,
    "validation_error": 400,
    "invalid_reference": 400,
    "invalid_cnpj": 400,
    "unauthenticated": 401,
    "conflicting_credentials": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "invalid_transition": 409,
    "idempotency_in_progress": 409,
    "precondition_failed": 412,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
    "idempotency_mismatch": 422,
    "rate_limited": 429,
    "internal_error": 500,
    "unavailable": 503,
}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with one field: `field` as the client wrote it, `message` names the fix."""

    field: str
    code: str
    message: str


class Refusal(Exception):
    """A request is refused. `code` is a key of STATUS; `message` is for the client's developer."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        faults: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = STATUS[code]
        self.message = message
        self.faults = tuple(faults)
        self.headers = dict(headers or {})
        self.extra = dict(extra or {})

    def body(self, request_id: str) -> dict[str, Any]:
        """The error body of the REST door."""
        body: dict[str, Any] = {"error": self.message, "code": self.code}
        if self.faults:
            body["details"] = [
                {"field": f.field, "code": f.code, "message": f.message} for f in self.faults
            ]
        return body | self.extra | {"requestId": request_id}

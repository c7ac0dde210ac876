"""Checks the query of a request against the parameters that its operation declares.

Each rule derives from the schema in the document, so that a new parameter has one.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aiohttp import web

from gateway.records.errors import Fault
from gateway.records.record import STRICT, refusal
from gateway.records.values import numbers
from gateway.records.values.formats import Wrong
from gateway.records.values.schemas import ANY_ID, MOMENT, PLACE_ID, Schema
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.rest import paging, preferences
from gateway.rest.auth import authenticate
from gateway.rest.body import safe_names
from gateway.rest.document.operations import Handler, Operation, Parameter
from gateway.rest.params import bound
from gateway.rest.selections import UNKNOWN

IGNORED = "X-Ignored-Parameters"
_MONEY = numbers.money()
_MESSAGES = {
    ANY_ID["pattern"]: "Send an id: 24 hexadecimal digits.",
    PLACE_ID["pattern"]: "Send the nextCursor of the previous page.",
}


class Rule(NamedTuple):
    """Which texts fit a parameter, and the message for all others."""

    fits: Callable[[str], Any]
    message: str


def rule_of(parameter: Parameter) -> Rule | None:
    """Return the rule of a parameter; None if any text fits. Raises ValueError for a new kind."""
    schema, rule = parameter.schema, None
    kind, pattern = schema.get("type"), schema.get("pattern")
    allowed: Sequence[str] = parameter.allowed or schema.get("enum", ())
    if allowed:
        between = " " if "," in "".join(allowed) else ", "
        rule = Rule(frozenset(allowed).__contains__, f"Send one of: {between.join(allowed)}.")
    elif kind == "boolean":
        rule = Rule(("true", "false").__contains__, "Send true or false.")
    elif kind == "integer":
        rule = _whole(schema)
    elif schema == _MONEY.schema:
        most = schema["maximum"]
        rule = Rule(_is_money, f"Send an amount from 0 to {most} with at most two decimals.")
    elif schema == MOMENT:
        message = "Send a date or a date-time, such as 2026-12-01 or 2026-12-01T14:30:00Z."
        # Forms send an empty text for what is left out.
        rule = Rule(lambda text: not text or bound(text) is not None, message)
    elif kind == "string" and pattern:
        message = _MESSAGES.get(pattern, parameter.description)
        rule = Rule(re.compile(pattern, re.ASCII).fullmatch, message)
    elif kind != "string":
        raise ValueError(f"No rule for the parameter {parameter.name}: {schema}")
    if rule is None or "default" not in schema:
        return rule
    default = str(schema["default"])
    default = default.lower() if kind == "boolean" else default
    return rule._replace(message=f"{rule.message[:-1]}; the default is {default}.")


def _whole(schema: Schema) -> Rule:
    least, most = schema["minimum"], schema.get("maximum")

    def fits(text: str) -> bool:
        if not (text.isascii() and text.isdigit()):
            return False
        digits = text.lstrip("0") or "0"
        # A longer number is above each bound; int() would refuse thousands of digits.
        number = int(digits[: numbers.MOST_DIGITS + 1])
        return number >= least and (most is None or number <= most)

    upto = "" if most is None else f" to {most}"
    return Rule(fits, f"Send a whole number from {least}{upto}.")


def _is_money(text: str) -> bool:
    try:
        _MONEY.accept(decode(text.encode(errors="replace")))
    except (InvalidJson, Wrong):
        return False
    return True


def checked(operation: Operation) -> Handler:
    """Return the handler that refuses a query which does not fit the operation.

    It names unknown parameters in a header, or refuses them with `Prefer: handling=strict`. A list
    always refuses those of paging. The caller is recognised first.
    """
    handle = operation.handle
    known = [p.name for p in operation.parameters if p.where == "query"]
    rules = {
        p.name: rule
        for p in operation.parameters
        if p.where == "query" and (rule := rule_of(p)) is not None
    }

    async def asked(request: web.Request) -> web.StreamResponse:
        if not request.query_string:
            return await handle(request)
        query, unknown = request.query, list[str]()
        faults = []
        for name, text in query.items():
            if name in rules and not rules[name].fits(text):
                faults.append(Fault(name, "invalid_parameter", rules[name].message))
            elif name not in known:
                unknown.append(name)
        unknown = [*dict.fromkeys(unknown)]
        prefers = "Prefer" in request.headers
        strict = unknown and prefers and preferences.is_strict(request)
        if faults or strict or (unknown and paging.refuses(operation, unknown)):
            if operation.credential != "none":
                (await authenticate(request)).must("write" if request.method == "POST" else "read")
            paging.must_be_known(operation, known, unknown)
            if faults:
                raise refusal(faults)
            if strict:
                raise preferences.unknown(unknown, "parameter", known)
        response = await handle(request)
        unknown += request.get(UNKNOWN, ())
        if unknown:
            response.headers[IGNORED] = safe_names(unknown)
        elif prefers and preferences.is_strict(request):
            response.headers[preferences.APPLIED] = STRICT
        return response

    return asked

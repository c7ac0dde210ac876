"""Reads the client credentials of a webhook as they are typed: a part on each line, `name: value`.

A fault names its part, so that a form shows it there, and has a code, so that each language has its
own sentence for it.
"""

import difflib
from collections.abc import Mapping
from typing import cast

from gateway.records.values.formats import Wrong, together
from gateway.records.values.patterns import NOT_TEXT
from outbox.sending import addresses, urls
from outbox.sending.client_credentials import ClientAuthentication, ClientCredentials
from outbox.sending.request import LONGEST_NAME, MASK, TOKEN

PARTS = ("tokenUrl", "clientId", "clientSecret", "scope", "audience", "clientAuthentication")
PARAMETERS = "parameters"
PREFIX = f"{PARAMETERS}."
WAYS = ("basic", "body")
LONGEST: Mapping[str, int] = {
    "tokenUrl": 2048, "clientId": 512, "clientSecret": 4096, "scope": 2048, "audience": 2048,
}  # fmt: skip
LONGEST_PARAMETER = 2048
MOST_PARAMETERS = 10
OWN = frozenset({"grant_type", "client_id", "client_secret", "scope", "audience"})
"""Parameters that other parts set."""
SCOPE_SIGNS = frozenset(map(chr, (0x21, *range(0x23, 0x5C), *range(0x5D, 0x7F))))
"""RFC 6749, section 3.3."""

LINES = "Write each part on its own line, as tokenUrl: value."
REQUIRED = {
    "tokenUrl": "Enter the token URL of the authorisation server.",
    "clientId": "Enter the client id, or empty all fields of OAuth2.",
    "clientSecret": "Enter the client secret, or empty all fields of OAuth2.",
}
MOVED = (
    "The URL or the token URL is on another server now; enter the client secret and the values of "
    "parameters again."
)
NOT_STORED = "No value is stored that {mask} could keep; enter it."
AUTHORIZATION = (
    "Remove the header Authorization: the access token is sent in it. Or empty the fields of "
    "OAuth2."
)
UNREADABLE = (
    "The stored OAuth2 settings cannot be decrypted. Enter them again, or leave the fields empty."
)


def read(
    text: str, rules: addresses.Rules, stored: ClientCredentials | None, *, moved: bool = False
) -> ClientCredentials | None:
    """Return the client credentials of a text; None for one without any value.

    `***` keeps the secret or parameter that is `stored`, unless the webhook has `moved` to another
    server, or the token URL has. Raise Wrong with every fault.
    """
    wrongs = list[Wrong]()
    typed, parameters = _parted(text, wrongs)
    if not wrongs and not parameters and not any(typed[name] for name in PARTS[:-1]):
        return None
    if stored is not None and not urls.same_server(stored.token_url, typed["tokenUrl"]):
        moved = True

    def kept(part: str, value: str, before: str) -> str:
        """Return a typed value, or the stored one that the mask stands for."""
        if value != MASK:
            return value
        if stored is not None and moved:
            wrongs.append(Wrong("oauth2_moved", MOVED, f".{part}"))
        elif not before:
            wrongs.append(Wrong("oauth2_not_stored", NOT_STORED.format(mask=MASK), f".{part}"))
        return before

    for part in PARTS[:-1]:
        if wrong := _judged(part, typed[part], rules):
            wrongs.append(wrong)
    way = typed["clientAuthentication"] or WAYS[0]
    if way not in WAYS:
        message = "The client authentication must be basic or body."
        wrongs.append(Wrong("oauth2_way", message, ".clientAuthentication"))
    known = {} if stored is None else dict(stored.parameters)
    pairs = []
    for name, value in parameters.items():
        part = f"{PREFIX}{name}"
        if wrong := _judged_parameter(name, value):
            wrongs.append(wrong)
        pairs.append((name, kept(part, value, known.get(name, ""))))
    if len(parameters) > MOST_PARAMETERS:
        text = "There can be at most {most} parameters."
        wrongs.append(Wrong("oauth2_many", text, f".{PARAMETERS}", most=MOST_PARAMETERS))
    secret = kept("clientSecret", typed["clientSecret"], stored.client_secret if stored else "")
    if wrongs:
        raise together(wrongs)
    return ClientCredentials(
        token_url=typed["tokenUrl"],
        client_id=typed["clientId"],
        client_secret=secret,
        scope=" ".join(typed["scope"].split()),
        audience=typed["audience"],
        parameters=tuple(pairs),
        client_authentication=cast(ClientAuthentication, way),
    )


def shown(credentials: ClientCredentials | None) -> str:
    """Return client credentials as they are typed, without secrets: also a parameter may be one."""
    if credentials is None:
        return ""
    values = {
        "tokenUrl": credentials.token_url, "clientId": credentials.client_id,
        "clientSecret": MASK, "scope": credentials.scope, "audience": credentials.audience,
        "clientAuthentication": credentials.client_authentication,
    }  # fmt: skip
    values |= {f"{PREFIX}{name}": MASK for name, _ in credentials.parameters}
    return "".join(f"{name}: {value}\n" for name, value in values.items() if value)


def parts_of(text: str) -> dict[str, str]:
    """Return the typed parts by name, for a form; `parameters` has its own lines."""
    parts = dict.fromkeys((*PARTS, PARAMETERS), "")
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.partition(":"))
        if name.startswith(PREFIX):
            parts[PARAMETERS] += f"{name.removeprefix(PREFIX)}: {value}\n"
        elif name in parts:
            parts[name] = value
    return parts


def typed(parts: Mapping[str, str]) -> str:
    """Return the text of the parts of a form; it is empty when only the choice was made."""
    values = {name: " ".join(parts[name].splitlines()).strip() for name in PARTS}
    lines = [f"{name}: {value}" for name, value in values.items() if value]
    lines += [f"{PREFIX}{line}" for line in map(str.strip, parts[PARAMETERS].splitlines()) if line]
    return "".join(f"{line}\n" for line in lines) if lines[1:] or not values[PARTS[-1]] else ""


def _parted(text: str, wrongs: list[Wrong]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the parts of a text, and the further parameters; note what is neither."""
    typed, parameters = dict.fromkeys(PARTS, ""), dict[str, str]()
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            wrongs.append(Wrong("oauth2_lines", LINES, f".{PARAMETERS}"))
        elif name in PARTS:
            typed[name] = value
        elif name.startswith(PREFIX):
            if name.removeprefix(PREFIX) in parameters:
                wrongs.append(Wrong("oauth2_twice", "A parameter is there twice.", f".{name}"))
            parameters[name.removeprefix(PREFIX)] = value
        else:
            near = difflib.get_close_matches(name[:80], (*PARTS, PREFIX), n=1)
            hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(PARTS)}."
            message = f"OAuth2 has no such part; {hint}"
            wrongs.append(Wrong("oauth2_part", message, f".{name[:80]}"))
    return typed, parameters


def refused_url(refused: urls.Refused, at: str = "") -> Wrong:
    """Return the error of a URL that is refused."""
    text = f"{refused.text[0].upper()}{refused.text[1:]}."
    return Wrong(f"refused_{refused.kind}", text, at, **refused.values)


def _judged(part: str, value: str, rules: addresses.Rules) -> Wrong | None:
    at = f".{part}"
    if not value:
        return Wrong("required", REQUIRED[part], at) if part in REQUIRED else None
    if len(value) > LONGEST[part]:
        return Wrong("too_long", "It must have at most {most} characters.", at, most=LONGEST[part])
    if NOT_TEXT.search(value):
        return Wrong("invalid", "It must not contain control characters.", at)
    if part == "scope" and not set(value) <= SCOPE_SIGNS | {" "}:
        message = (
            "A scope has printable ASCII without quotes and backslashes; spaces separate several."
        )
        return Wrong("oauth2_scope", message, at)
    if part == "tokenUrl":
        try:
            urls.check_url(value, rules)
        except urls.Refused as refused:
            return refused_url(refused, at)
    return None


def _judged_parameter(name: str, value: str) -> Wrong | None:
    at = f".{PREFIX}{name[:80]}"
    if not TOKEN.fullmatch(name) or len(name) > LONGEST_NAME:
        message = "The name of a parameter has up to {most} letters, digits, _ and -."
        return Wrong("oauth2_name", message, at, most=LONGEST_NAME)
    if name in OWN:
        return Wrong("oauth2_own", f"{name} is set by its own field, or by Carteiro.", at)
    if len(value) > LONGEST_PARAMETER or NOT_TEXT.search(value):
        message = "Its value has at most {most} characters, none of control."
        return Wrong("oauth2_value", message, at, most=LONGEST_PARAMETER)
    return None

"""Chooses the media type of a response from the header Accept."""

from functools import lru_cache

JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
HTML = "text/html"


@lru_cache(maxsize=256)
def chosen(accept: str, *, html: bool = False) -> str:
    """Return the media type that an Accept header prefers; JSON when it accepts none of ours.

    `html` also offers text/html, to clients that name it.
    """
    offered = (JSON, GRAPHQL, HTML) if html else (JSON, GRAPHQL)
    best, chosen_type = 0.0, JSON
    for kind in offered:
        quality = _quality(accept, kind)
        # On a tie the type that the client names first wins; JSON when it names none.
        if quality > best or (
            quality == best > 0 and 0 <= accept.lower().find(kind) < _place(accept, chosen_type)
        ):
            best, chosen_type = quality, kind
    return chosen_type


def _place(accept: str, kind: str) -> int:
    place = accept.lower().find(kind)
    return len(accept) if place < 0 else place


def _quality(accept: str, kind: str) -> float:
    """Return the quality of a media type: that of the most specific range that holds it."""
    ranges = {kind: 2, f"{kind.partition('/')[0]}/*": 1, "*/*": 0}
    if kind == HTML:
        # Programs send */*; only browsers name the page's type.
        ranges = {kind: 2}
    specific, quality = -1, 0.0
    for part in (accept or "*/*").lower().split(","):
        name, *parameters = (word.strip() for word in part.split(";"))
        if ranges.get(name, -1) > specific:
            specific, quality = ranges[name], _weight(parameters)
    return quality


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return min(max(float(parameter[2:]), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0

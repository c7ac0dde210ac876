"""Parts of a page that the browser polls."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from markupsafe import Markup

from gateway.console.layout.guard import SignedIn
from gateway.console.layout.templates import render

TIMES = re.compile("<time [^>]*>[^<]*</time>")
MARK = "@seen@"


def live(
    request: web.Request,
    visitor: SignedIn,
    template: str,
    part: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
) -> web.Response:
    """Render a page with a part that htmx polls; `{{ live }}` in the template is its place.

    When nothing but times has changed since the last poll, the response is 204, so that the page
    does not move while somebody reads, selects or opens things in it.
    """
    text = render(request, visitor, part, {**context, "seen": MARK}).text or ""
    digest = hashlib.sha256(TIMES.sub("", text).encode()).hexdigest()[:16]
    text = text.replace(MARK, digest)
    if "HX-Request" not in request.headers:
        whole = {**context, "live": Markup(text)}  # noqa: S704 - our own template
        return render(request, visitor, template, whole, status=status)
    if request.query.get("seen") == digest:
        return web.Response(status=204)
    return web.Response(text=text, content_type="text/html")

"""The bytes of a URL in a request: as its owner typed them.

Signed URLs (SAS, pre-signed, `sig=`) are valid byte for byte. Only what the grammar of a request
line excludes (RFC 9112, 3.2, and RFC 3986, 2) is percent-encoded; nothing is decoded or folded.
"""

import re
from urllib.parse import urlsplit

from yarl import URL

EXCLUDED = re.compile(r'[^!-~]|["<>\\^`{|}]')
PARTS = re.compile(r"(?P<start>[^/?#]*//[^/?#]*)(?P<path>[^?#]*)(?P<query>[^#]*)", re.S)


def encoded(text: str) -> str:
    """Return a text of a URL with only what no request line may have as `%XX` of its UTF-8."""
    if EXCLUDED.search(text) is None:
        return text
    return EXCLUDED.sub(_percent, text)


def target_of(url: str) -> str:
    """Return the path and query of a valid URL as the request line has them."""
    parts = PARTS.match(url)
    assert parts is not None
    return encoded((parts["path"] or "/") + parts["query"])


def requested(url: str) -> str:
    """Return the URL of a request as it was sent, for the log; an invalid one as it is."""
    if EXCLUDED.search(url) is None:
        return url
    parts = PARTS.match(url)
    if parts is None:
        return encoded(url)
    try:
        # Of the host, its ASCII form is sent.
        authority = URL(parts["start"]).host_port_subcomponent
    except ValueError:
        return encoded(url)
    scheme = parts["start"].partition(":")[0].lower()
    return f"{scheme}://{authority}{encoded(parts['path'] + parts['query'])}"


def target_before(url: str) -> str:
    """Return the path and query as earlier versions requested them: decoded and folded."""
    try:
        return URL(url).raw_path_qs
    except ValueError:
        return urlsplit(url).path


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))

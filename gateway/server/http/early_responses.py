"""Responses to requests that reach no handler, and the pattern of probes' request lines."""

import re

from aiohttp.http_exceptions import LineTooLong

END = b"Content-Length: 0\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n" + END
SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + END
LONG_HEAD = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + END
PROBE = re.compile(rb"(GET|HEAD) /(livez|readyz|metrics)(\?[!-~]*)? HTTP/1\.[01]")
PROBE_LINE = 512
FIELD_BYTES = 16_384


def status_of(fault: BaseException | None, message: str) -> int:
    """Return the status for a request that the parser refuses."""
    if "invalid `Transfer-Encoding`" in message or "Invalid `Transfer-Encoding`" in message:
        return 501
    too_long = isinstance(fault, LineTooLong) and fault.args[1] == FIELD_BYTES
    return 431 if too_long or message == "Too many headers received" else 400

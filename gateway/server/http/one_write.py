"""Sends a whole response in one write, without the steps of aiohttp that it does not need.

aiohttp prepares each response for compression, chunks, cookies and signals first. The bytes are the
same; the private attributes of aiohttp's responses used here are all in this module.
"""

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time


async def send(request: web.BaseRequest, response: web.StreamResponse) -> bool:
    """Send the response if it is whole and plain; return whether it was. Raise ConnectionError.

    The response has its header Server.
    """
    if type(response) is not web.Response:
        return False
    body, headers, status = response.body, response.headers, response.status
    if (
        not isinstance(body, bytes)
        or request.version != HttpVersion11
        or request.method == "HEAD"
        # The statuses without a body.
        or status in (204, 304)
        or status < 200
        or response.prepared
        or response.chunked
        or response.compression
        or response._cookies
        or "Content-Length" in headers
        or "Connection" in headers
    ):
        return False
    headers["Content-Length"] = str(len(body))
    if body:
        headers.setdefault("Content-Type", "application/octet-stream")
    if "Date" not in headers:
        headers["Date"] = rfc822_formatted_time()
    if response.keep_alive is None:
        response._keep_alive = request.keep_alive
    if not response.keep_alive:
        headers["Connection"] = "close"
    writer = response._payload_writer = request.writer
    await writer.write_headers(f"HTTP/1.1 {status} {response.reason}", headers)
    await writer.write_eof(body)
    response._eof_sent = True
    return True

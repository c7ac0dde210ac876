"""Requests with any bytes in their headers: aiohttp's client sends only text."""

import asyncio

from multidict import CIMultiDict, CIMultiDictProxy

from tests.support.rest import Reply


async def send(port: int, line: bytes, *headers: bytes, body: bytes = b"") -> Reply:
    """Send a request with these header lines to a port of loopback; return the response."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fixed = (b"Host: 127.0.0.1", b"Connection: close", b"Content-Length: %d" % len(body))
    head = [line + b" HTTP/1.1", *fixed, *headers, b"", b""]
    writer.write(b"\r\n".join(head) + body)
    answer = await reader.read()
    writer.close()
    begin, _, text = answer.partition(b"\r\n\r\n")
    status, *lines = begin.decode("utf-8").split("\r\n")
    found = CIMultiDict[str]()
    for each in lines:
        name, _, value = each.partition(": ")
        found.add(name, value)
    return Reply(int(status.split(" ")[1]), CIMultiDictProxy(found), text.decode())

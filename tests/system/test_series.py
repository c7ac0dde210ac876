"""The metrics page stays small after all operations, by all callers and in odd ways.

The server is a separate process. No response may be a 500, and the page must stay within the budget
of docs/reference/metrics.md, apart from single webhooks.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.support.deployed import deployed
from tests.support.document import entries, resolved
from tests.support.engines import Engine
from tests.support.faults import ENGINES

OPERATIONS = 78
MOST_SERIES = 1_500
MOST_BYTES = 300_000
METHODS = (
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
    "TRACE", "CONNECT", "PROPFIND", "BREW", "get", "X" * 40,
)  # fmt: skip
HOSTS = ("example.com", "127.0.0.1:1", "[::1]", "a" * 200 + ".example")
PATHS = (
    "/", "//", "/api", "/api/", "/api//contacts", "/api/contacts/", "/api/none", "/console/none",
    "/consolex", "/graphql", "/graphql/x", "/metrics/", "/livez/x", "/.env", "/api/%2e%2e/metrics",
    "/api/contacts/%00", "/console/static/none.css", "/%E2%82%AC",
)  # fmt: skip
MISSING = "0123456789ab0123456789ab"
LEAST_SERVED = 70
"""Routes and methods with a 2xx response; without any, the run means nothing."""
SERVED = re.compile(
    r'^http_server_requests_total{method="(?!HEAD|OPTIONS).*status_class="2xx"', re.M
)
PLACE = re.compile(r"\{(\w+)\}")
AT_ONCE = 4
# Their faults differ, so that many status classes occur.
BODIES: tuple[Any, ...] = ({}, {"name": 5}, [])


@dataclass
class _Calls:
    """The requests so far."""

    http: aiohttp.ClientSession
    operations: set[str] = field(default_factory=set)
    count: int = 0
    failed: list[str] = field(default_factory=list)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send one request; return its JSON, or None."""
        self.count += 1
        data = None if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        if data is not None:
            sent["Content-Type"] = "application/json"
        try:
            async with self.http.request(
                method, path, data=data, headers=sent, allow_redirects=False
            ) as response:
                if response.status == 500:
                    self.failed.append(f"{method} {path}: 500")
                text = await response.read()
                return json.loads(text) if response.content_type == "application/json" else None
        except (aiohttp.ClientError, ValueError):
            # Refused by the parser of either side.
            return None


@ENGINES
async def test_every_operation_in_every_way_keeps_the_page_in_its_budget(engine: Engine) -> None:
    async with deployed(engine, 1, ports=[9], owners=2, webhooks=1) as site:
        connector = aiohttp.TCPConnector(limit=AT_ONCE)
        async with aiohttp.ClientSession(site.product.address, connector=connector) as http:
            calls = _Calls(http)
            await _everything(calls, [*site.tenants.keys.values()])
        # The page is up to a second old.
        await asyncio.sleep(1.1)
        _, page = await site.product.get("/metrics")
    own = [line for line in page.splitlines(keepends=True) if "webhook_endpoint_" not in line]
    names = [re.sub(r"(_bucket|_sum|_count)?[{ ].*", "", line.strip()) for line in own]
    series = Counter(name for name in names if not name.startswith("#"))
    size, served = sum(len(line.encode()) for line in own), len(SERVED.findall(page))
    print(json.dumps({
        "engine": engine, "calls": calls.count, "series": series.total(), "bytes": size,
        "served": served, "largest": dict(series.most_common(5)),
    }))  # fmt: skip
    assert calls.failed == []
    assert len(calls.operations) >= OPERATIONS
    assert served >= LEAST_SERVED
    assert series.total() <= MOST_SERIES
    assert size <= MOST_BYTES


async def _everything(calls: _Calls, keys: list[str]) -> None:
    owner, other = keys
    records: dict[str, str] = {}
    for method, path, entry in entries():
        if method == "post" and not PLACE.search(path) and (example := _example(entry)):
            about = {"relatedTo": records.get("/api/contacts", MISSING)}
            body = example | (about if "relatedTo" in example else {})
            made = await calls.call("POST", path, body, X_API_Key=owner)
            if isinstance(made, dict) and "id" in made:
                records[path] = made["id"]
    callers: tuple[dict[str, str], ...] = (
        {"X_API_Key": other}, {}, {"X_API_Key": "crt_nonsense"}, {"X_API_Key": owner},
    )  # fmt: skip
    # Records to delete must exist for all other operations before.
    for caller in callers:
        for method, path, entry in sorted(entries(), key=lambda e: e[0] == "delete"):
            calls.operations.add(entry["operationId"])
            place = records.get(PLACE.split(path)[0].rstrip("/"), MISSING)
            for record_id in (MISSING, "no-id", place):
                where = PLACE.sub(record_id, path)
                if method in ("get", "delete"):
                    await calls.call(method.upper(), where, **caller)
                    continue
                for body in (*BODIES, _example(entry)):
                    await calls.call(method.upper(), where, body, **caller)
    await asyncio.gather(*(_odd(calls, *one, owner) for one in _oddities()))


def _oddities() -> Iterator[tuple[str, str, str]]:
    """Method, path and host."""
    probes = ("/livez", "/readyz", "/metrics")
    paths = {PLACE.sub(MISSING, path) for _, path, _ in entries()}
    for path in (*sorted(paths), *probes, *CONSOLE, *PATHS):
        for method in METHODS:
            yield method, path, ""
    for path in (*probes, "/api/contacts", "/console", "/"):
        for host in HOSTS:
            yield "GET", path, host


CONSOLE = tuple(
    f"/console{rest}"
    for rest in (
        "", "/sign-in", "/sign-out", "/first-account", "/webhooks", "/webhooks/new",
        *(f"/webhooks/{MISSING}{verb}" for verb in (
            "", "/edit", "/pause", "/activate", "/delete", "/test", "/deliveries")),
        f"/deliveries/{MISSING}", f"/deliveries/{MISSING}/replay", "/keys",
        f"/keys/{MISSING}/revoke", "/account", f"/account/sessions/{MISSING}/end",
        "/account/sign-out-everywhere",
    )
)  # fmt: skip


async def _odd(calls: _Calls, method: str, path: str, host: str, key: str) -> None:
    headers = {"Host": host} if host else {}
    await calls.call(method, path, **headers)
    await calls.call(method, path, X_API_Key=key, **headers)


def _example(entry: dict[str, Any]) -> Any:
    """Return a body from the document, without references; None where no JSON is taken."""
    if "requestBody" not in entry:
        return None
    content = resolved(entry["requestBody"])["content"]
    return _alone(content["application/json"]["example"]) if "application/json" in content else None


def _alone(value: Any) -> Any:
    """Remove members that refer to missing records."""
    if isinstance(value, list):
        return [_alone(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: _alone(item) for name, item in value.items() if not name.endswith(("Id", "Ids"))}

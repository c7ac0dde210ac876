"""Keep the contacts and companies of an ERP equal to those of Carteiro.

    CARTEIRO_URL=http://127.0.0.1:8080 CARTEIRO_KEY=crt_… WEBHOOK_SECRET=whsec_… python erp_sync.py

It receives events and reads the record of each, as an event has few of its fields. Versions decide,
so events may come twice, late and in any order. At its start it reads everything once.
"""

import json
import os
import sqlite3
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from verify import refusal

URL, KEY = os.environ["CARTEIRO_URL"], os.environ["CARTEIRO_KEY"]
SECRET, PORT = os.environ["WEBHOOK_SECRET"], int(os.environ.get("PORT", "9000"))
KINDS = {"contact": "contacts", "company": "companies"}
NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")
erp = sqlite3.connect(os.environ.get("ERP", "erp.db"))
erp.execute("create table if not exists records (id text primary key, version int, fields text)")
STORE = """
insert into records values (?, ?, ?) on conflict (id) do update
set version = excluded.version, fields = excluded.fields where excluded.version > records.version
"""


def ask(path: str) -> tuple[Any, int]:
    """Return what the API has, and the version in the ETag of a record."""
    with urlopen(Request(URL + path, headers={"X-API-Key": KEY}), timeout=30) as answer:
        etag = (answer.headers["ETag"] or "").strip('W/"')
        return json.load(answer), int(etag) if etag.isdigit() else 0


def take(kind: str, record_id: str, version: int, name: str) -> None:
    """Store a record as it is now; one that is gone stays as a row without fields."""
    fields = None
    if not name.endswith(".deleted"):
        try:
            record, version = ask(f"/api/{kind}/{record_id}")
            fields = json.dumps(record)
        except HTTPError as error:
            if error.code != 404:
                raise
            return  # Its deleted event follows.
    with erp:
        erp.execute(STORE, (record_id, version, fields))


def fill() -> None:
    for kind in KINDS.values():
        path = first = f"/api/{kind}?limit=100"
        while path:
            page, _ = ask(path)
            for record in page["data"]:
                take(kind, record["id"], 0, f"{kind}.created")
            path = f"{first}&cursor={page['nextCursor']}" if page.get("nextCursor") else ""


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        event_id, sent_at, signatures = (self.headers.get(name, "") for name in NAMES)
        reason = refusal(SECRET, event_id, sent_at, signatures, body, time.time())
        if reason:
            self.send_error(401, reason)
            return
        event = json.loads(body)
        kind = KINDS.get(event["event"].split(".")[0])
        version = int(self.headers.get("X-Webhook-Record-Version", 0))
        if kind:
            take(kind, event["data"]["id"], version, event["event"])
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    HTTPServer.request_queue_size = 128  # With the usual 5, connections of a burst wait for long.
    server = HTTPServer(("127.0.0.1", PORT), Receiver)  # Connections wait until all is read.
    fill()
    server.serve_forever()

"""Tell a chat room about each deal that is won: once, also when a delivery comes twice.

    WEBHOOK_SECRET=whsec_… CHAT_URL=https://chat.example.com/hooks/sales python deal_to_chat.py

The webhook sends deal.updated with the filter `status = won` and `status changed`. verify.py is
that of docs/examples/receivers/python.
"""

import json
import os
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError
from urllib.request import Request, urlopen

from verify import refusal

SECRET, CHAT = os.environ["WEBHOOK_SECRET"], os.environ["CHAT_URL"]
FILE, PORT = os.environ.get("MESSAGES", "messages.db"), int(os.environ.get("PORT", "9000"))
NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")
JSON = {"Content-Type": "application/json"}
waiting = threading.Event()


def opened() -> sqlite3.Connection:
    db = sqlite3.connect(FILE)
    db.execute("create table if not exists messages (id text primary key, text text, sent int)")
    return db


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        event_id, sent_at, signatures = (self.headers.get(name, "") for name in NAMES)
        reason = refusal(SECRET, event_id, sent_at, signatures, body, time.time())
        if reason:
            self.send_error(401, reason)
            return
        event = json.loads(body)
        if event["event"] == "deal.updated":
            text = f"Deal won: {event['data']['title']}"
            with opened() as db:
                db.execute("insert or ignore into messages values (?, ?, 0)", (event_id, text))
        self.send_response(204)
        self.end_headers()
        waiting.set()

    def log_message(self, *args: object) -> None:
        pass


def post() -> None:
    """Post what waits, in order; the chat may be away for a while."""
    while True:
        waiting.wait(30)
        waiting.clear()
        db = opened()
        for event_id, text in db.execute("select id, text from messages where sent = 0").fetchall():
            message = Request(CHAT, json.dumps({"text": text}).encode(), JSON)
            try:
                urlopen(message, timeout=10).close()
            except URLError:
                break
            with db:
                db.execute("update messages set sent = 1 where id = ?", (event_id,))
        db.close()


class Server(ThreadingHTTPServer):
    request_queue_size = 128


threading.Thread(target=post, daemon=True).start()
waiting.set()
Server(("127.0.0.1", PORT), Receiver).serve_forever()

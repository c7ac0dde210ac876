import json
import os
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from verify import refusal

SECRET = os.environ["WEBHOOK_SECRET"]
SEEN = set()  # use a table with a unique column instead: a set is empty after a restart


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        event_id, sent_at, signatures = (self.headers.get(name, "") for name in names)
        reason = refusal(SECRET, event_id, sent_at, signatures, body, time.time())
        if reason:
            self.send_error(401, reason)
            return
        self.send_response(204)
        self.end_headers()
        if event_id not in SEEN:
            SEEN.add(event_id)
            print(json.loads(body)["event"], event_id, flush=True)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128  # with the usual 5, a connection of a burst waits for seconds


Server(("127.0.0.1", 9000), Receiver).serve_forever()

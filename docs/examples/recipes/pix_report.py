"""Pay orders when their Pix arrives: pass the bank's message on to Carteiro.

    CARTEIRO_URL=https://crm.example.com STORE_ID=… PAYMENT_SECRET=whsec_… python pix_report.py

It takes the body of the webhook of the Pix API of Banco Central: {"pix": [{"endToEndId", "txid",
"valor"}]}. Let only your bank reach it, by the client certificate that the bank names.
"""

import base64
import hmac
import json
import os
import re
import time
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

URL, STORE = os.environ["CARTEIRO_URL"], os.environ["STORE_ID"]
KEY = base64.b64decode(os.environ["PAYMENT_SECRET"].removeprefix("whsec_"))
PORT = int(os.environ.get("PORT", "9000"))
TXID = re.compile(r"ORD(\d+)")


def number(txid: str) -> str | None:
    """Return the number of the order: a txid has its letters and digits alone."""
    match = TXID.fullmatch(txid)
    return None if match is None else f"ORD-{match[1]}"


def report(order: str, pix: dict[str, Any]) -> int:
    """Tell Carteiro about a payment; again without harm. Return the status."""
    reference = pix["endToEndId"]
    amount = float(Decimal(pix["valor"]))
    body = json.dumps({"orderNumber": order, "amount": amount, "reference": reference}).encode()
    now = str(int(time.time()))
    signed = hmac.digest(KEY, f"{reference}.{now}.".encode() + body, "sha256")
    headers = {
        "Content-Type": "application/json", "webhook-id": reference, "webhook-timestamp": now,
        "webhook-signature": "v1," + base64.b64encode(signed).decode(),
    }  # fmt: skip
    try:
        with urlopen(Request(f"{URL}/api/payments/callback/{STORE}", body, headers)) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


class Bank(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        pix = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))["pix"]
        orders = [(number(one.get("txid", "")), one) for one in pix]
        answers = [report(order, one) for order, one in orders if order is not None]
        # 429 and 5xx are tried again; 4xx is for a person: another amount, or no such order.
        again = any(status == 429 or status >= 500 for status in answers)
        self.send_response(503 if again else 200)
        self.end_headers()
        print(*zip(orders, answers, strict=False), flush=True)

    def log_message(self, *args: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Bank).serve_forever()

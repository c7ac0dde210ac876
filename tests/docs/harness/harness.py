"""Give each line of requests to the function of verify-signatures.md, and print what it says."""

import base64
import sys

from verify import refusal  # type: ignore[import-not-found]

for line in sys.stdin:
    fields = [b"" if field == "-" else base64.b64decode(field) for field in line.split()]
    secret, event_id, sent_at, signatures, _, now = (field.decode() for field in fields)
    print(refusal(secret, event_id, sent_at, signatures, fields[4], int(now)) or "accepted")

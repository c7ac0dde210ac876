"""Runs `refusal` of verify.py through docs/vectors.json, the first argument."""

import json
import pathlib
import sys

from verify import refusal

wrong = 0
for vector in json.loads(pathlib.Path(sys.argv[1]).read_text("utf-8"))["vectors"]:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    event_id, sent_at, signatures = (vector["headers"].get(name, "") for name in names)
    body, now = vector["body"].encode(), vector["now"]
    reason = refusal(vector["secret"], event_id, sent_at, signatures, body, now)
    if reason != (vector["reason"] or ""):
        wrong += 1
        print(vector["name"], "must give", vector["reason"], "and not", reason or "accepted")
print("wrong:", wrong)

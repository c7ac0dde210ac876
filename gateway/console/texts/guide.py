"""The console's texts of the receiver's guide and of the check of a request, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "guide.page": "Receiver's guide",
    "guide.link": "Receiver's guide, and check a request",
    "guide.title": "Verify the requests",
    "guide.lead": "Copy the function of your language into your receiver. The second file checks a"
    " signed example with this webhook's secret and prints “genuine”.",
    "guide.hidden": "The secret was shown once; put yours where whsec_… stands.",
    "guide.copy": "Copy {file}",
    "guide.run": "Run it:",
    "guide.raw": "Verify the raw bytes of the body, before any JSON parser touches them.",
    "guide.once": "Store webhook-id, and ignore an event that you have stored already.",
    "guide.soon": "Answer 2xx first, and work on the event afterwards.",
    "check.title": "Check a request",
    "check.lead": "Paste a request that your receiver got. Its signatures are compared with this"
    " webhook's secrets. Nothing is stored.",
    "check.request": "Request",
    "check.hint": "Headers, an empty line, and the body; or a command of curl.",
    "check.submit": "Check signature",
    "check.unreadable": "This is not a header; write each as Name: value, and an empty line before"
    " the body:",
    "check.right_current": "right, made with the current secret.",
    "check.right_staged": "right, made with the new secret that is not active yet.",
    "check.right_old": "right, made with the replaced secret.",
    "check.missing_header": "missing. A proxy may have dropped the header.",
    "check.malformed_timestamp": "webhook-timestamp is not a number of seconds.",
    "check.no_v1_signature": "it has no value that starts with v1,.",
    "check.wrong_signature": "wrong. The request was signed with another secret, or its id,"
    " timestamp or body was changed.",
    "check.reformatted": "right for the bytes that were sent, but these are others: the JSON was"
    " parsed and written again. Verify the raw body.",
    "check.too_old": "It was sent {span} ago. A receiver refuses requests older than 5 minutes.",
    "check.too_new": "It was sent {span} ahead of this server's clock. A receiver refuses that.",
}

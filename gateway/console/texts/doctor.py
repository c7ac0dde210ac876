"""The console's texts about the doctor of a webhook, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "doctor.title": "Doctor",
    "doctor.help": "Sends a signed test event to the receiver now and shows each step: the verdict"
    " is that of a delivery. It is marked with X-Webhook-Test: 1 and is not stored.",
    "doctor.submit": "Examine receiver",
    "doctor.again": "Examine again",
    "doctor.running": "The receiver is being examined…",
    "doctor.well": "A delivery to this receiver would succeed.",
    "doctor.ill": "A delivery would fail at this step: {step}.",
    "doctor.retried": "It would be sent again after {span}.",
    "doctor.exhausted": "It would not be sent again, because there are no retries.",
    "doctor.gone": "The webhook would be disabled.",
    "doctor.parked": "The delivery would wait, and use up no attempt, until this is repaired.",
    "doctor.dead": "The delivery would end as dead.",
    "doctor.inactive": "The webhook is not active, so its deliveries wait until you activate it.",
    "doctor.steps": "Steps",
    "doctor.passed": "passed",
    "doctor.skipped": "not needed",
    "doctor.failed": "failed",
    "step.url": "URL",
    "step.sign": "Signature",
    "step.dns": "DNS lookup",
    "step.egress": "Egress rules",
    "step.connect": "Connection",
    "step.tls": "TLS",
    "step.answer": "Response",
    "retries.title": "When would retries follow?",
    "retries.help": "If the receiver failed every attempt from now on. Each wait varies by up to"
    " 20 % so that retries spread out; a slow response adds its time, and Retry-After can ask for"
    " more.",
    "retries.none": "A failed delivery is not sent again: the schedule of this server is empty.",
    "retries.attempt": "Attempt",
    "retries.usual": "After the first",
    "retries.earliest": "Not before",
    "retries.latest": "Not after",
}

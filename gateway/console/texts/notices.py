"""The console's texts about operational webhooks and about webhooks in trouble, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "operational.create": "New operational webhook",
    "operational.lead": "An operational webhook is told when another webhook of your account fails,"
    " is disabled or recovers, and when a delivery is given up: for the system that watches yours."
    " It gets no events of records.",
    "operational.kind": "operational",
    "operational.label": "Kind",
    "operational.endpoint.failing": "a receiver fails again and again",
    "operational.endpoint.disabled": "a webhook is disabled",
    "operational.endpoint.recovered": "a receiver accepts deliveries again",
    "operational.delivery.exhausted": "all attempts of a delivery failed",
    "trouble.label": "Webhooks in trouble",
    "trouble.gone": "Disabled, because the receiver answered 410 Gone:",
    "trouble.gone.help": "Events are parked. Correct the URL or the receiver, then activate the"
    " webhook and choose which of them are sent.",
    "trouble.disabled": "Disabled, because the receiver failed for five days:",
    "trouble.disabled.help": "Events are parked. Correct the receiver, check it with the doctor,"
    " then activate the webhook and choose which of them are sent.",
    "trouble.failing": "Failing again and again:",
    "trouble.failing.help": "Deliveries wait, and none is lost. Look at the latest answers and"
    " correct the receiver. One delivery is tried now and then; a test event that succeeds lets all"
    " go on at once.",
    "trouble.more": "More webhooks in trouble: {count}.",
    "trouble.all": "All webhooks",
}

"""The console's texts about webhooks that keep the order of each record, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "lines.title": "Order",
    "lines.none": "Each record is in order: no failed delivery keeps others waiting.",
    "lines.held": "Deliveries that wait for an earlier one of their record: {count}.",
    "lines.show": "Show them",
    "lines.stuck": "The first delivery of each of these records failed and is tried again. The"
    " later ones of the record wait for it; other records are not held up.",
    "lines.record": "Record",
    "lines.since": "Waits since",
    "lines.behind": "Behind it",
    "lines.next": "Next attempt",
    "lines.sending": "under way",
    "lines.actions": "Actions",
    "lines.skip": "Skip",
    "lines.skip_help": "Cancels this delivery and sends the next one of the record. You can replay"
    " it later.",
    "lines.place_held": "Waits for",
    "lines.place_head": "an earlier delivery of this record",
    "lines.place_behind": "Waiting for this",
    "lines.place_count": "{count} later deliveries of this record",
    "done.skipped": "Delivery skipped. The next one of its record is sent now.",
}

"""The console's texts about steering deliveries and about recover jobs, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "steer.now": "Try now",
    "steer.now_help": "Sends this delivery next. It keeps its place in the schedule.",
    "steer.cancel": "Cancel delivery",
    "steer.cancel_help": "It is not sent. You can replay it later.",
    "select.start": "Select deliveries",
    "select.end": "End selection",
    "select.column": "Select",
    "select.one": "Select {event} of {record}",
    "select.all": "Select all",
    "select.none": "Clear",
    "select.replay": "Replay selected",
    "select.cancel": "Cancel selected",
    "select.help": "Cancelling affects only deliveries that wait; a replay is a new delivery of the"
    " same event.",
    "select.title": "Send these events again?",
    "select.count": "Selected deliveries: {count}.",
    "select.delivered": "Receivers have accepted {count} of them and get the same event again, with"
    " the same id and body. A receiver that deduplicates by id ignores it.",
    "select.waiting": "{count} of them are not finished and will still be sent, so the receiver may"
    " get the event twice.",
    "done.hastened": "The delivery is next.",
    "done.cancelled": "Delivery cancelled.",
    "done.selection_replayed": "Replays created, one for each selected delivery.",
    "done.selection_cancelled": "The selected deliveries that waited are cancelled.",
    "error.not_waiting": "This delivery does not wait: it is being sent now, or it has ended.",
}

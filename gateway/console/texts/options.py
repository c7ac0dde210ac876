"""The console's texts about the options of a webhook, by key."""

from collections.abc import Mapping

SENTENCES: Mapping[str, str] = {
    "options.conditions": "Filter",
    "options.conditions_hint": "Send only the events whose data meets these conditions, one per"
    " line, at most {most}: field = value, or field is present. All of them must hold. An event"
    " that lacks the field does not pass. Test events and replays pass always.",
    "options.schedule": "Retry schedule",
    "options.schedule_hint": "The waits before each retry, at most {most}, such as 5 s, 5 min, 2 h;"
    " never means one attempt alone. Leave empty for the server's default: {usual}.",
    "options.ordered": "Send the events of each record in order",
    "options.ordered_hint": "The next event of a record waits until the one before it has ended, so"
    " a receiver that fails delays this record. Other records go on.",
    "options.preview": "Try filter and schedule",
    "options.preview_help": "Shows a sample of each selected event and when retries follow. Saves"
    " nothing.",
    "options.trials": "What the filter does with a sample of each event",
    "options.no_events": "Select at least one event to try the filter.",
    "options.passes": "Passes",
    "options.fails": "Left out",
    "options.never": "Never sent",
    "options.why": "Does not hold for this sample: {conditions}.",
    "options.why_never": "No {event} fulfils: {conditions}.",
    "options.sample": "Sample data",
    "options.retries": "When the retries follow",
    "options.settings_filter": "Filter",
    "options.settings_left_out": "Left out in the time of the charts: {count}.",
    "options.settings_never": "Never sent, because none of them can pass the filter: {events}.",
    "options.settings_damaged": "The stored filter cannot be read, so each event ends as dead. Edit"
    " the webhook to write it again.",
    "options.settings_order": "Order",
    "options.settings_ordered": "the events of each record one after the other",
    "options.settings_schedule": "Retries after",
}

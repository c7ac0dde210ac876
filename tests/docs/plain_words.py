"""Lists phrases that texts avoid, each with a plainer one, and words that only look misspelled."""

from collections.abc import Mapping

AVOIDED: Mapping[str, str] = {
    "fails some on purpose": "deliberately fails some requests",
    "by the thousand": "thousands",
    "for single addresses only": "list individual addresses",
    "nothing waits": "queue empty",
    "day beside week": "compare 24 h and 7 days",
    "what became of its": "the status of its",
    "wants no more events": "asked to stop receiving events",
    "wants fewer requests": "rate-limited, unavailable or overloaded",
    "the verdict is that of": "a real delivery would get this result",
    "when would retries follow": "retry schedule",
    "a command of curl": "a curl command",
    "but these are others": "but this body was re-serialized",
    "replays pass always": "filters skip tests and replays",
    "one attempt alone": "`never` disables retries",
    "that it never got": "it never received",
    "new events are sent beside it": "new events continue in parallel",
    "deliveries it will make": "will create … deliveries",
    "the system that watches": "your monitoring system",
    "lets all go on at once": "resumes all deliveries",
    "a row without texts": "an empty row",
    "makes an order paid": "an order is paid when its invoice is",
    "place in the log": "log position",
    "again and again": "repeatedly",
    "now and then": "periodically",
    "see details)": "… more error in details",
    "never cuts a page": "pages are always complete",
    "the write fixes the bytes": "bytes never change after the write",
    "hears what becomes": "receives reports about",
    "behind the newest event": "after the newest event",
    "edit holds from the moment": "edits apply immediately",
    "is told no more": "notices expire",
    "vouches for": "covers, or proves",
    "can make its digests right": "can recompute the checksums",
    "are yours to change": "rotate these yourself",
    "both kinds may be several": "run several of each",
    "a poor machine": "slow hardware",
    "made at home": "your own version",
    "stands still": "hangs, or waits",
    "missed here": "missed the target",
    "on its way to": "queued for",
    "the hopeless ones": "the impossible ones",
    "nobody has told their part": "their share was not measured",
    "falls silent": "stops sending",
    "comes to life": "starts",
    "goes to sleep": "waits",
    "lie in wait": "wait",
}
"""Parts of sentences that were odd: a verb hidden in a noun, a thing that acts, a metaphor."""
NAMES = (
    "nome", "falso", "ois", "flor", "cliente", "cros", "te",
)  # fmt: skip
"""Words of Portuguese and of programs."""
TOLERATED = (
    "docs/reliability.md: “again and again”: repeatedly",
    "docs/tracing.md: “nothing waits”: queue empty",
    "docs/tracing.md: “again and again”: repeatedly",
)
"""Phrases that stay until their pages are rewritten."""
REPEATED = (
    "a request for a record of another account gets 403",
    "2026 11 23 2 cores of amd epyc 24 gib ext4 a flush of 4 kib takes 0 12 ms linux 6 18 "
    "python 3 11 7",
    "2026 11 23 2 cores of amd epyc 24 gib ext4 a flush of 4 kib takes 0 13 ms linux 6 18 "
    "python 3 11 7",
    "10 000 deliveries a run 32 connections one run of each point",
    "over when the share of the last 30 minutes is below 0 6",
    "sign in with an id_token of an identity provider creates the account when there is none",
)
"""Sentences, as lower-case words, that may stand twice until their pages are rewritten."""

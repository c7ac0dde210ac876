"""The checks of a certification, in their order: what each sends, and what the receiver must do.

The names stand in reports and in docs/reference/checks.md, and never change their meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from outbox.durations import MINUTE, SECOND
from outbox.worker.certification.posts import Kit, Post, Specimen

Way = Literal["apart", "kept", "at_once"]
"""Each over a connection of its own, all over one kept connection, or all at the same time."""
AT_ONCE = 64
DOUBLED = 5
STALE_SECONDS = 10 * MINUTE // SECOND
NEAR_SECONDS = MINUTE // SECOND
LATE_EVENT_SECONDS = 3 * 24 * 3600
LAST_ATTEMPT = 12
SPARE_BYTES = 64 * 1024
UNKNOWN_EVENT = "certification.unknown"
MIX_OF_NEW = "v1a,bm90IGEgc2lnbmF0dXJl v9,bm90IGEgc2lnbmF0dXJl"
"""Signatures of versions that the receiver need not know."""


@dataclass(frozen=True, slots=True)
class Check:
    """What to send, and whether each of it must be accepted or refused."""

    name: str
    accepts: bool
    posts: Callable[[Kit], Iterator[Post]]
    way: Way = "apart"
    mild: bool = False
    """Whether a receiver that does otherwise gets a warning alone."""
    crowded: bool = False
    """Whether it is so many requests at once that a receiver may ask for fewer."""


def _one(kit: Kit) -> Iterator[Post]:
    yield kit.post()


def _duplicate(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield post
    for attempt in (2, LAST_ATTEMPT):
        yield kit.again(post, attempt)


def _duplicates(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield from (kit.again(post, attempt) for attempt in range(1, DOUBLED + 1))


def _reordered(kit: Kit) -> Iterator[Post]:
    """Yield versions 3, 1, 2 of one record."""
    for version in (3, 1, 2):
        yield kit.post(version=version)


def _late_event(kit: Kit) -> Iterator[Post]:
    yield kit.post(event_age=LATE_EVENT_SECONDS, attempt=10)


def _near(kit: Kit) -> Iterator[Post]:
    for age in (NEAR_SECONDS, -NEAR_SECONDS):
        yield kit.post(age=age)


def _rotation_first(kit: Kit) -> Iterator[Post]:
    yield kit.post(secrets=(kit.secret, kit.other))


def _rotation_second(kit: Kit) -> Iterator[Post]:
    yield kit.post(secrets=(kit.other, kit.secret))


def _newer_signatures(kit: Kit) -> Iterator[Post]:
    for first in (True, False):
        post = kit.post()
        right = post.value("webhook-signature")
        both = (right, MIX_OF_NEW) if first else (MIX_OF_NEW, right)
        yield post.having(webhook_signature=" ".join(both))


def _header_names(kit: Kit) -> Iterator[Post]:
    for upper in (True, False):
        yield kit.post().spelled(upper=upper)


def _letters(kit: Kit) -> Iterator[Post]:
    yield kit.post(kit.material.letters)


def _every_event(kit: Kit) -> Iterator[Post]:
    for specimen in kit.material.samples:
        yield kit.post(specimen)


def _unknown_event(kit: Kit) -> Iterator[Post]:
    yield kit.post(Specimen(UNKNOWN_EVENT, {"id": kit.post().event_id}))


def _unknown_field(kit: Kit) -> Iterator[Post]:
    first = kit.material.samples[0]
    yield kit.post(Specimen(first.event, {**first.data, "addedLater": {"new": [1, None]}}))


def _more_headers(kit: Kit) -> Iterator[Post]:
    yield kit.post().having(
        X_Webhook_Sequence="7",
        X_Webhook_Snapshot="1",
        X_Webhook_Replay="1",
        X_Webhook_Added_Later="1",
    )


def _largest(kit: Kit) -> Iterator[Post]:
    yield kit.post(kit.material.largest)


def _spare(kit: Kit) -> Iterator[Post]:
    largest = kit.material.largest
    yield kit.post(Specimen(largest.event, {**largest.data, "addedLater": "x" * SPARE_BYTES}))


def _kept(kit: Kit) -> Iterator[Post]:
    for specimen in (kit.material.letters, kit.material.largest, kit.material.samples[0]):
        yield kit.post(specimen)


def _many(kit: Kit) -> Iterator[Post]:
    yield from (kit.post() for _ in range(AT_ONCE))


def _unsigned(kit: Kit) -> Iterator[Post]:
    yield kit.post().having(
        webhook_id=None, webhook_timestamp=None, webhook_signature=None, X_Webhook_Signature=None
    )


def _without_id(kit: Kit) -> Iterator[Post]:
    yield kit.post().having(webhook_id=None)


def _without_timestamp(kit: Kit) -> Iterator[Post]:
    yield kit.post().having(webhook_timestamp=None)


def _without_signature(kit: Kit) -> Iterator[Post]:
    yield kit.post().having(webhook_signature=None)


def _empty_signature(kit: Kit) -> Iterator[Post]:
    for empty in ("", ",", "v1,"):
        yield kit.post().having(webhook_signature=empty, X_Webhook_Signature="sha256=")


def _forged(kit: Kit) -> Iterator[Post]:
    yield kit.forged(kit.post())


def _wrong_secret(kit: Kit) -> Iterator[Post]:
    yield kit.post(secrets=(kit.other,))


def _empty_secret(kit: Kit) -> Iterator[Post]:
    yield kit.by_key(kit.post(), b"")


def _changed_body(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    place = post.body.index(b'"timestamp":') + len(b'"timestamp":')
    digit = b"1" if post.body[place : place + 1] != b"1" else b"2"
    yield _with_body(post, post.body[:place] + digit + post.body[place + 1 :])


def _longer_body(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield _with_body(post, post.body + b"\n")


def _no_body(kit: Kit) -> Iterator[Post]:
    yield _with_body(kit.post(), b"")


def _spaced_body(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield _with_body(post, post.body.replace(b'","', b'", "').replace(b'":', b'": '))


def _changed_id(kit: Kit) -> Iterator[Post]:
    new = kit.post().event_id
    yield kit.post().having(webhook_id=new, X_Webhook_Id=new)


def _changed_timestamp(kit: Kit) -> Iterator[Post]:
    post = kit.post(age=2)
    yield post.having(webhook_timestamp=str(int(post.value("webhook-timestamp")) + 1))


def _too_old(kit: Kit) -> Iterator[Post]:
    yield kit.post(age=STALE_SECONDS)


def _too_new(kit: Kit) -> Iterator[Post]:
    yield kit.post(age=-STALE_SECONDS)


def _odd_timestamp(kit: Kit) -> Iterator[Post]:
    """Yield right signatures over timestamps that are not Unix seconds."""
    post = kit.post()
    milliseconds = f"{post.value('webhook-timestamp')}000"
    for text in ("soon", milliseconds, "NaN"):
        yield kit.signed(kit.post(), text)


def _other_version(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield kit.forged(post).having(webhook_signature=f"v9,{kit.right_mac(post)}")


def _short_signature(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield kit.forged(post).having(webhook_signature=f"v1,{kit.right_mac(post)[:8]}")
    begun = post.value("x-webhook-signature")[:15]
    yield kit.forged(post).having(X_Webhook_Signature=begun)


def _other_case(kit: Kit) -> Iterator[Post]:
    post = kit.post()
    yield kit.forged(post).having(webhook_signature=f"v1,{kit.right_mac(post).swapcase()}")


def _with_body(post: Post, body: bytes) -> Post:
    return Post(post.event_id, post.headers, body)


GENUINE = Check("genuine", True, _one)
"""The first one. Without it the others could tell nothing."""

CHECKS: tuple[Check, ...] = (
    Check("duplicate", True, _duplicate),
    Check("duplicates_at_once", True, _duplicates, "at_once"),
    Check("reordered", True, _reordered),
    Check("late_event", True, _late_event),
    Check("clock_difference", True, _near, mild=True),
    Check("rotation_first", True, _rotation_first),
    Check("rotation_second", True, _rotation_second),
    Check("newer_signatures", True, _newer_signatures),
    Check("header_names", True, _header_names),
    Check("letters", True, _letters),
    Check("every_event", True, _every_event),
    Check("unknown_event", True, _unknown_event),
    Check("unknown_field", True, _unknown_field, mild=True),
    Check("more_headers", True, _more_headers),
    Check("largest_body", True, _largest),
    Check("spare_body", True, _spare, mild=True),
    Check("kept_connection", True, _kept, "kept"),
    Check("unsigned", False, _unsigned),
    Check("without_id", False, _without_id),
    Check("without_timestamp", False, _without_timestamp),
    Check("without_signature", False, _without_signature),
    Check("empty_signature", False, _empty_signature),
    Check("forged", False, _forged),
    Check("wrong_secret", False, _wrong_secret),
    Check("empty_secret", False, _empty_secret),
    Check("changed_body", False, _changed_body),
    Check("longer_body", False, _longer_body, mild=True),
    Check("spaced_body", False, _spaced_body, mild=True),
    Check("no_body", False, _no_body),
    Check("changed_id", False, _changed_id),
    Check("changed_timestamp", False, _changed_timestamp),
    Check("too_old", False, _too_old),
    Check("too_new", False, _too_new),
    Check("odd_timestamp", False, _odd_timestamp),
    Check("other_version", False, _other_version),
    Check("short_signature", False, _short_signature),
    Check("other_case", False, _other_case),
    Check("many_at_once", True, _many, "at_once", crowded=True),
)
SEEN = ("quick", "response_ends", "silent")
"""What the responses to all others show: how long they take, how they end, what they tell."""
NAMES = (GENUINE.name, *(check.name for check in CHECKS), *SEEN)

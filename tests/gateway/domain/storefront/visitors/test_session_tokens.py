"""The tokens of sessions: every key of the ring verifies, and the newest signs."""

from gateway.domain.storefront.visitors.compact_jws import header_of
from gateway.domain.storefront.visitors.customer_sessions import Session
from gateway.domain.storefront.visitors.session_tokens import TokenRing
from outbox.ids import Ids
from outbox.webhooks.secrets import KeyRing, new_key_line, parse_keys

IDS = Ids()
DAY = 86_400_000_000
SESSION = Session("1" * 24, "2" * 24, "3" * 24, DAY, 2 * DAY)


def ring_of(*lines: str) -> KeyRing:
    return parse_keys("".join(lines), IDS, "the test's keys")


def test_a_rotation_keeps_the_tokens_of_keys_that_stay() -> None:
    old, new = new_key_line(IDS, 0), new_key_line(IDS, DAY)
    before, both, after = TokenRing(ring_of(old)), TokenRing(ring_of(old, new)), ring_of(new)
    token = before.sign(SESSION)
    claim = both.read(token, DAY)
    assert claim is not None
    ids = (claim.session_id, claim.customer_id, claim.store_id)
    assert ids == ("1" * 24, "2" * 24, "3" * 24)
    assert header_of(both.sign(SESSION))["kid"] == new.split()[0]
    assert TokenRing(after).read(token, DAY) is None
    assert TokenRing(after).read(both.sign(SESSION), DAY) is not None


def test_a_token_ends_with_its_session() -> None:
    ring = TokenRing(ring_of(new_key_line(IDS, 0)))
    token = ring.sign(SESSION)
    assert ring.read(token, 2 * DAY - 1) is not None
    assert ring.read(token, 2 * DAY) is None


def test_the_key_of_a_purpose_is_none_of_another() -> None:
    """The keys that encrypt secrets do not sign tokens, and each purpose has keys of its own."""
    line = new_key_line(IDS, 0)
    ring = ring_of(line)
    [signing], [other] = ring.derive("storefront sessions").values(), ring.derive("x").values()
    assert len(signing) == 32
    assert signing != other
    assert signing != ring._secrets[line.split()[0]]

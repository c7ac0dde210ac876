"""Both signature schemes, verified by third-party code."""

import base64
import hashlib
import hmac
import json
import time

import pytest
from gidgethub import ValidationFailure, sansio
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from outbox.sending.request import new_secret, sign_body, sign_standard
from tests.support.node import OCTOKIT, run_node

RANDOM = bytes(range(32))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
OLD = "whsec_" + base64.b64encode(b"an older secret of this webhook!").decode()
BODY = '{"event":"contact.created","timestamp":1760000000,"data":{"name":"Açaí"}}'.encode()
MESSAGE = "0197f0c0ffee0123456789ab"
NOW = 1_760_000_000
secrets = st.binary(min_size=32, max_size=32).map(new_secret)
bodies = st.text(max_size=300).map(str.encode)


def test_a_new_secret_is_its_random_bytes_in_base64() -> None:
    assert new_secret(RANDOM) == SECRET


def test_the_body_signature_is_keyed_with_the_secret_as_shown() -> None:
    key = SECRET.encode()
    assert sign_body(SECRET, BODY) == "sha256=" + hmac.new(key, BODY, hashlib.sha256).hexdigest()


def test_the_body_signature_of_a_published_example() -> None:
    # From GitHub's page on validating webhook deliveries.
    assert sign_body("It's a Secret to Everybody", b"Hello, World!") == (
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    )


@given(secret=secrets, body=bodies)
@pytest.mark.slow
def test_gidgethub_accepts_the_body_signature_and_nothing_else(secret: str, body: bytes) -> None:
    signature = sign_body(secret, body)
    sansio.validate_event(body, signature=signature, secret=secret)
    with pytest.raises(ValidationFailure):
        sansio.validate_event(body + b" ", signature=signature, secret=secret)
    with pytest.raises(ValidationFailure):
        sansio.validate_event(body, signature=signature, secret=secret + "A")


@given(secret=secrets, body=bodies)
@pytest.mark.slow
def test_standardwebhooks_accepts_the_trio_and_nothing_else(secret: str, body: bytes) -> None:
    # The library refuses timestamps older than five minutes, and a test run may be older.
    now = int(time.time())
    headers = {
        "webhook-id": MESSAGE,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_standard([secret], MESSAGE, now, body),
    }
    Webhook(secret).verify(body, headers, json_parse=False)
    for changed in ({"webhook-id": MESSAGE + "0"}, {"webhook-timestamp": str(now + 1)}):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body, headers | changed, json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body + b" ", headers, json_parse=False)


def test_with_two_secrets_the_trio_verifies_with_either() -> None:
    now = int(time.time())
    headers = {
        "webhook-id": MESSAGE,
        "webhook-timestamp": str(now),
        "webhook-signature": sign_standard([SECRET, OLD], MESSAGE, now, BODY),
    }
    assert Webhook(SECRET).verify(BODY, headers) == json.loads(BODY)
    assert Webhook(OLD).verify(BODY, headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret(b"\xff" * 32)).verify(BODY, headers)


@pytest.mark.parametrize("secret", ["AAAA", "whsec_not base64", "whsec_A"])
def test_a_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(ValueError):
        sign_standard([secret], MESSAGE, NOW, BODY)


def test_octokit_accepts_the_body_signature_and_nothing_else() -> None:
    case = json.dumps([SECRET, BODY.decode(), sign_body(SECRET, BODY)])
    script = f"""
        import {{ verify }} from {json.dumps(OCTOKIT)};
        const [secret, body, signature] = {case};
        const other = body.replace("contact", "company");
        console.log(JSON.stringify([
          await verify(secret, body, signature),
          await verify(secret, other, signature),
          await verify(secret + "A", body, signature),
        ]));
    """
    assert json.loads(run_node(script, OCTOKIT).stdout) == [True, False, False]

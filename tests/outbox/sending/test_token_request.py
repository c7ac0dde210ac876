"""What token endpoints in use answer, and what is asked of them."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qsl

import pytest

from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.outcome import Outcome, judge, unanswered
from outbox.sending.request import Request, Via
from outbox.sending.token_request import fetch, life_of, posted, read

SECRET = "s3cret+/: %é"
OURS = ClientCredentials(
    "https://login.example/token", "crm", SECRET, parameters=(("k", "hush-2"),)
)


def answer(status: int, body: bytes | str | dict[str, Any], kind: str = "") -> Outcome:
    if isinstance(body, dict):
        body = json.dumps(body)
    data = body if isinstance(body, bytes) else body.encode()
    headers = [("Content-Type", kind)] if kind else []
    return Outcome(
        outcome=judge(status), status=status, retry_after="5", total_us=1000,
        response_headers=headers, response_body=data,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "authorization", "life"),
    [
        # Keycloak and others write `bearer`; Linear refuses the header with it.
        ({"access_token": "t", "token_type": "bearer", "expires_in": 300}, "Bearer t", 300),
        # NetDocuments and PingFederate: a text.
        ({"access_token": "a/b+c==", "token_type": "Bearer", "expires_in": "2700"},
         "Bearer a/b+c==", 2700),
        # Entra ID, version 1.
        ({"token_type": "Bearer", "expires_in": "3599", "ext_expires_in": "3599",
          "expires_on": "1388444763", "resource": "https://x", "access_token": "e.y.J"},
         "Bearer e.y.J", 3599),
        # Salesforce says nothing of the end, and its tokens have an exclamation mark.
        ({"access_token": "00D7!ARg.Ow", "instance_url": "https://x", "token_type": "Bearer",
          "issued_at": "1710000000000", "signature": "c2"}, "Bearer 00D7!ARg.Ow", None),
        # VK means a token without end by 0; Spring gives a token out again at its last second.
        ({"access_token": "t", "token_type": "bearer", "expires_in": 0}, "Bearer t", None),
        ({"access_token": "t", "expires_in": None, "error": None}, "Bearer t", None),
        ({"access_token": "t", "expires_in": 3599.7}, "Bearer t", 3599.7),
        ({"access_token": "t", "expires_in": "soon"}, "Bearer t", None),
        ({"access_token": "t", "expires_in": True}, "Bearer t", None),
        ({"access_token": "t", "expires_in": -1}, "Bearer t", None),
        # A byte order mark, and a type that is not JSON's.
        (b'\xef\xbb\xbf{"access_token":"t"}', "Bearer t", None),
    ],
)  # fmt: skip
def test_a_token_is_read(body: Any, authorization: str, life: float | None) -> None:
    token = read(OURS, answer(200, body, "text/html"), 1000.0).token
    assert token is not None
    assert (token.authorization, token.life) == (authorization, life)
    assert 1000 < token.renewed_at < token.ends_at < 1000 + (life or 3600)


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        # GitHub and Slack answer errors with success.
        (200, {"error": "incorrect_client_credentials", "error_description": "Are wrong."},
         "answered 200 without an access token: incorrect_client_credentials: Are wrong."),
        (200, {"token_type": "Bearer", "access_token": ""}, "answered 200 without an access token"),
        (200, "<!doctype html><html><title>Sign in\n to x</title>",
         "answered 200 with no JSON object: a page with the title “Sign in to x”"),
        (200, "<html>", "answered 200 with no JSON object: a page of HTML or XML"),
        (200, "access_token=abc&token_type=bearer", "answered 200 with no JSON object"),
        (200, '["access_token"]', "answered 200 with no JSON object"),
        (200, "[" * 16_000, "answered 200 with no JSON object"),
        (204, "", "answered 204 with no JSON object"),
        (200, {"access_token": "t", "token_type": "DPoP"}, "a token of the type DPoP, not Bearer"),
        (200, {"access_token": "a\r\nX: 1"}, "gave a token that no header can have"),
        (302, "", "answered 302, a redirect, which is not followed"),
        (410, "", "answered 410"),
        (400, {"error": "invalid_scope", "error_description": "AADSTS1002012: use /.default"},
         "answered 400: invalid_scope: AADSTS1002012: use /.default"),
        # Okta has other names, Graph an object.
        (401, {"errorCode": "invalid_client", "errorSummary": "An id\nis missing"},
         "answered 401: invalid_client: An id is missing"),
        (403, {"error": {"code": "Forbidden", "message": "No"}}, "answered 403: Forbidden: No"),
        (502, "<html><head><title>502 Bad Gateway</title>",
         "answered 502: a page with the title “502 Bad Gateway”"),
        (500, "out of memory", "answered 500: out of memory"),
    ],
)  # fmt: skip
def test_why_there_is_no_token(status: int, body: Any, says: str) -> None:
    fetched = read(OURS, answer(status, body), 0.0)
    assert fetched.token is None
    assert fetched.failure in (f"the token endpoint {says}", f"the token endpoint gave {says}")
    refusal = fetched.refusal()
    # A status would decide about the receiver: 410 disables its webhook.
    assert (refusal.outcome, refusal.status, refusal.response_body) == ("token_error", None, b"")
    assert refusal.retry_after == ("5" if status == 502 else None)


def test_secrets_that_an_endpoint_repeats_are_masked() -> None:
    encoded = "s3cret%2B%2F%3A%20%25%C3%A9"
    for told in (f"{SECRET} hush-2 {encoded}", f"{'x' * 285} {SECRET}"):
        said = read(OURS, answer(400, {"error_description": told}), 0.0).failure
        assert "***" in said
        assert "s3cr" not in said
        assert "hush" not in said
    basic = dict(posted(OURS, "Carteiro")[0])["Authorization"].partition(" ")[2]
    assert basic not in read(OURS, answer(400, f"got {basic}"), 0.0).failure
    assert SECRET not in repr(OURS)


def test_an_endpoint_without_an_answer_is_named() -> None:
    closed = unanswered("connect_error", "the receiver closed the connection", 1.0)
    said = read(OURS, closed, 0.0).failure
    assert said == "the token endpoint failed: it closed the connection"
    assert life_of("9" * 12) == 999_999_999_999


@pytest.mark.parametrize("way", ["basic", "body"])
def test_the_request_has_the_settings(way: Any) -> None:
    credentials = ClientCredentials(
        "https://x", "crm:1", SECRET, "https://org.example/.default x", "api",
        (("resource", "é &"),), way,
    )  # fmt: skip
    headers, body = posted(credentials, "Carteiro")
    named, form = dict(headers), parse_qsl(body.decode("ascii"), strict_parsing=True)
    assert named["Accept"] == "application/json"
    expected = [
        ("grant_type", "client_credentials"), ("scope", "https://org.example/.default x"),
        ("audience", "api"), ("resource", "é &"),
    ]  # fmt: skip
    if way == "basic":
        # As a form encodes it, but a space as both ways of decoding know it.
        pair = base64.b64decode(named["Authorization"].removeprefix("Basic ")).decode()
        assert pair == "crm%3A1:s3cret%2B%2F%3A%20%25%C3%A9"
        assert form == expected
    else:
        assert "Authorization" not in named
        assert form == [*expected, ("client_id", "crm:1"), ("client_secret", SECRET)]


@pytest.mark.parametrize(
    ("token_url", "via", "expected"),
    [
        ("https://login.example/t", Via("PEM", "office"), Via(None, "office")),
        ("https://login.example/t", Via("PEM"), Via()),
        ("https://hooks.example/t", Via("PEM"), Via("PEM")),
        ("https://login.example/t", Via(None, "office"), Via(None, "office")),
    ],
)  # fmt: skip
async def test_a_client_certificate_goes_to_the_server_of_its_receiver_only(
    token_url: str, via: Via, expected: Via
) -> None:
    class Sender:
        async def send(self, url: str, *_: Any, via: Via) -> Outcome:
            assert (url, via) == (token_url, expected)
            return answer(200, {"access_token": "t"})

    class Clock:
        def monotonic(self) -> float:
            return 0.0

    request = Request(
        "e", "thing.made", 0, 1, 1, "event", "https://hooks.example/crm", b"", ("whsec_",), via=via,
        oauth2=ClientCredentials(token_url, "crm", SECRET),
    )  # fmt: skip
    fetched = await fetch(Sender(), Clock(), request, "Carteiro")  # type: ignore[arg-type] # parts
    assert fetched.token is not None

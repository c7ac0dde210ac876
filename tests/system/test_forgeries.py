"""With a guard off, forged tokens sign somebody in (tests/gateway/graphql/test_identity.py)."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from gateway.domain.storefront.sign_in import idp_tokens
from gateway.domain.storefront.visitors import compact_jws
from gateway.domain.storefront.visitors.session_tokens import TokenRing
from gateway.server.config import Config, Egress
from tests.support.issuer import CLIENT, Issuer, issuing
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving
from tests.system.staging import opened

Forged = dict[str, list[str]]


def part(value: Any) -> str:
    """Return a part of a JWT."""
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def forged(issuer: Issuer) -> Forged:
    """Return forged tokens for a store that trusts `issuer` with CLIENT and requires a nonce."""
    good = issuer.claims(nonce="n-1")
    valid = issuer.token(nonce="n-1")
    head, body, tail = valid.split(".")
    rsa = issuer.keys["rsa"]
    assert isinstance(rsa, RSAKey)
    public = rsa.as_pem(private=False)
    foreign = RSAKey.generate_key(2048)
    now = int(time.time())

    def plain(alg: Any, signature: str = "") -> str:
        return f"{part({'alg': alg, 'kid': 'rsa', 'typ': 'JWT'})}.{part(good)}.{signature}"

    def with_claims(**changed: Any) -> str:
        return issuer.token(**({"nonce": "n-1"} | changed))

    def with_header(**more: Any) -> str:
        # The library makes no token with such a header.
        signed = f"{part({'alg': 'RS256', 'kid': 'rsa', **more})}.{body}"
        private = rsa.private_key
        assert private is not None
        return f"{signed}.{part(private.sign(signed.encode(), PKCS1v15(), SHA256()))}"

    def hmac_by(secret: bytes, alg: str) -> str:
        signed = f"{part({'alg': alg, 'kid': 'rsa'})}.{body}"
        digest = hmac.digest(secret, signed.encode(), f"sha{alg[2:]}")
        return f"{signed}.{part(digest)}"

    def by(key: Any, alg: str, **header: Any) -> str:
        return jwt.encode({"alg": alg, **header}, good, key, [alg], default_type=None)

    secrets = (public, public.strip(), json.dumps(rsa.as_dict(private=False)).encode(), b"")
    nones: list[Any] = ["none", "None", "NONE", "nOnE", "none ", "", None, [], 0]
    kids: list[Any] = [None, 1, ["rsa"], {}]
    jwk = foreign.as_dict(private=False)
    return {
        "alg none": [
            *(plain(a) for a in nones),
            plain("none", tail), plain("nonE", part(b"x")), f"{part({'kid': 'rsa'})}.{body}.{tail}",
        ],
        "HS256 with the public key": [
            *(hmac_by(secret, alg) for secret in secrets for alg in ("HS256", "HS512")),
            hmac_by(public, "HS384"),
        ],
        "a key of its own": [
            by(foreign, "RS256", kid="rsa"),
            by(foreign, "RS256", kid="mine", jwk=jwk),
            by(foreign, "RS256", kid="rsa", jwk=jwk),
            by(foreign, "RS256", kid="rsa", jku=f"{issuer.url}/jwks"),
            by(foreign, "RS256", kid="rsa", x5u=f"{issuer.url}/cert"),
            by(foreign, "RS256", kid="rsa", x5c=["MIIB"]),
            with_header(jwk=rsa.as_dict(private=False)),
        ],
        "kid tricks": [
            by(foreign, "RS256", kid=kid)
            for kid in (
                "../../../../dev/null", "/etc/passwd", "rsa'; drop table customers --", "",
                "http://127.0.0.1/key", "rsa\u0000", "RSA", "rsa " , "a" * 300, "%72sa",
            )
        ] + [
            f"{part({'alg': 'RS256', 'kid': kid})}.{body}.{tail}" for kid in kids
        ] + [with_header(kid=kid) for kid in kids],
        "wrong aud": [
            with_claims(aud=aud)
            for aud in ("other", ["other"], [], "", f"{CLIENT} ", {CLIENT: 1}, 7, [[CLIENT]])
        ] + [with_claims(aud=None)],
        "wrong azp": [
            with_claims(azp="other"), with_claims(azp=""), with_claims(azp=[CLIENT]),
            with_claims(aud=[CLIENT, "other"]), with_claims(aud=[CLIENT, "other"], azp="other"),
        ],
        "wrong iss": [
            with_claims(iss=iss)
            for iss in (
                "https://evil.example", f"{issuer.url}/", issuer.url.upper(), "", [issuer.url], 5,
                f"{issuer.url}.evil.example", "accounts.google.com", None,
            )
        ],
        "wrong nonce": [
            with_claims(nonce="n-2"), with_claims(nonce=None), with_claims(nonce=""),
            with_claims(nonce=["n-1"]), with_claims(nonce="n-1 "), with_claims(nonce=1),
        ],
        "expired": [
            with_claims(exp=exp)
            for exp in (now - 61, now - 3_600, 0, -1, "never", None, True, 1e300, [now + 60])
        ],
        "not yet valid": [
            with_claims(iat=now + 120), with_claims(nbf=now + 120), with_claims(iat="now"),
            with_claims(iat=None), with_claims(nbf="x"), with_claims(iat=now + 86_400),
        ],
        "truncated": [
            valid[:-1], valid[:-10], f"{head}.{body}", f"{head}.{body}.", f".{body}.{tail}",
            head, "", ".", "..", valid[1:], f"{valid}.{tail}", f"{head}..{tail}",
        ],
        "wrong typ": [
            with_header(typ=typ) for typ in ("at+jwt", "application/at+jwt", "JOSE", "dpop+jwt", 1)
        ] + [with_header(cty="JWT")],
        "crit": [
            with_header(crit=["exp"]), with_header(crit=[]), with_header(crit="exp"),
            with_header(b64=False), with_header(crit=["b64"], b64=False),
        ],
        "changed": [
            f"{head}.{part(good | {'sub': 'eve'})}.{tail}",
            f"{head}.{part(good | {'email': 'eve@example.com'})}.{tail}",
            f"{part({'alg': 'PS256', 'kid': 'rsa'})}.{body}.{tail}",
            f"{part({'alg': 'ES256', 'kid': 'ec'})}.{body}.{tail}",
            f"{part({'alg': 'ES256', 'kid': 'rsa'})}.{body}.{tail}",
            f"{head}.{body}.{part(bytes(256))}",
        ],
        "no sub": [with_claims(sub=sub) for sub in (None, "", 7, ["ana-1"], "a" * 256)],
        "no JSON": [
            f"{part(b'x')}.{body}.{tail}", f"{head}.{part(b'[]')}.{tail}",
            f"{head}.{part(b'{' * 5_000)}.{tail}", f"{part(b'[]')}.{body}.{tail}",
            f"{head}.{part(b'NaN')}.{tail}", "é.é.é", f" {valid}", f"{valid}\n",
            "a" * 100_000,
        ],
    }  # fmt: skip


def forged_sessions(token: str, ring: TokenRing) -> Forged:
    """Return forged session tokens, as an attacker with a valid one of another session makes them.

    Those of the kinds `claims` are signed with the right key, to show that the claims are checked.
    """
    head, body, tail = token.split(".")
    header = json.loads(unpart(head))
    claims = json.loads(unpart(body))
    right = ring._keys[header["kid"]]

    def sign(sent: Any, said: Any, key: OctKey = right) -> str:
        signed = f"{part(sent)}.{part(said)}"
        algorithm = sent.get("alg") if isinstance(sent, dict) else None
        size = str(algorithm)[2:] if str(algorithm) in ("HS384", "HS512") else "256"
        secret = key.raw_value
        return f"{signed}.{part(hmac.digest(secret, signed.encode(), f'sha{size}'))}"

    def says(**changed: Any) -> str:
        said = {n: v for n, v in (claims | changed).items() if v is not None}
        return sign(header, said)

    def heads(**changed: Any) -> str:
        sent = {n: v for n, v in (header | changed).items() if v is not None}
        return sign(sent, claims)

    nones: list[Any] = ["none", "None", "NONE", "nOnE", "", None]
    wrong = [OctKey.import_key(secret) for secret in (b"0" * 32, b"secret" * 6, token.encode())]
    kids: list[Any] = [None, "", "0" * 8, "../../dev/null", 1, ["a"], {}]
    other = "0" * 24
    return {
        "alg none": [
            *(f"{part(header | {'alg': alg})}.{body}." for alg in nones),
            *(f"{part(header | {'alg': alg})}.{body}.{tail}" for alg in nones),
        ],
        "another alg": [heads(alg=alg) for alg in ("HS384", "HS512", "hs256", "RS256", "HS256 ")],
        "another key": [sign(header, claims, key) for key in wrong]
        + [sign(header | {"kid": kid}, claims, wrong[0]) for kid in ("", "0", "../key", "' or 1")],
        "kid tricks": [heads(kid=kid) for kid in kids],
        "header": [
            heads(jwk={"kty": "oct", "k": "AAAA"}), heads(jku="https://evil.example"),
            heads(crit=["exp"]), heads(typ="at+jwt"), heads(typ=None), heads(cty="JWT"),
            heads(b64=False), heads(zip="DEF"),
        ],
        "claims iss": [says(iss=iss) for iss in (None, "", "evil", 1, ["carteiro"])],
        "claims aud": [says(aud=aud) for aud in (None, "", other, [claims["aud"]], 5, "*")],
        "claims sub": [says(sub=sub) for sub in (None, "", other, 1, [claims["sub"]])],
        "claims sid": [says(sid=sid) for sid in (None, "", other, 1, "' or 1 = 1 --", True)],
        "claims exp": [says(exp=exp) for exp in (None, 0, -1, 1, "never", [claims["exp"]], 1.5)],
        "truncated": [token[:-1], token[:-9], f"{head}.{body}", f"{head}.{body}.", head, "..", "x"],
        "changed": [
            f"{head}.{part(claims | {'sub': other})}.{tail}", f"{head}.{body}.{part(bytes(32))}",
            f"{head}.{part(claims | {'exp': claims['exp'] + 1})}.{tail}", f"{token}.{tail}",
        ],
    }  # fmt: skip


def unpart(text: str) -> bytes:
    """Return the bytes of a part of a JWT."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


CONFIG = Config(limits=UNLIMITED.limits, egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))
NONCE = "n-1"


def _nothing(*_: Any) -> None:
    """Check nothing."""


def _unsigned(token: str, *_: Any) -> dict[str, Any]:
    """Return the payload whoever signed it."""
    return compact_jws.payload_of(token)


GUARDS: Mapping[str, tuple[ModuleType, str, Any]] = {
    "signatures are not checked": (compact_jws, "verified", _unsigned),
    "headers are not checked": (idp_tokens, "_check_header", _nothing),
    "claims are not checked": (idp_tokens, "_check_claims", _nothing),
}
"""What to break; each must let a forged token in."""


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_guard_that_is_off_is_seen(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer, opened("sqlite") as db, serving(db, CONFIG) as site:
        provider = {"issuer": issuer.url, "clientIds": [CLIENT], "nonceRequired": True}
        shop = await open_shop(RestApi(site), idps=[provider])
        try:
            monkeypatch.setattr(*GUARDS[guard])
            browser, codes = shop.browser(), set[str]()
            for token in (token for tokens in forged(issuer).values() for token in tokens):
                answer = await browser.do("clientIdpLogin", "token", token=token, nonce=NONCE)
                codes.add(answer.code if "errors" in answer.body else "in")
        finally:
            await shop.close()
    assert codes != {"INVALID_TOKEN"}

"""Providers as they sign tokens and publish keys: sign-ins, changed keys, outages, later proofs."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.domain.storefront.sign_in import idp_keys
from gateway.domain.storefront.sign_in.idp_tokens import _is_proven, _name_in
from gateway.server.storefront import STOREFRONT
from tests.gateway.graphql.test_accounts import ANA, sign_up
from tests.gateway.graphql.test_identity import change_idp, counts, enter
from tests.support.issuer import CLIENT, Issuer, spare
from tests.support.mailbox import Mailbox
from tests.support.shop import Answer, Shop

pytestmark = pytest.mark.usefixtures("duties_look_often")

ONE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
"""What the engine does not decide."""
TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
RELAY = "x7q2mdkv9z@privaterelay.appleid.com"
EMAIL = "ana@example.com"
ANA_SOUZA = {"name": "Ana Souza", "given_name": "Ana", "family_name": "Souza"}
PROVEN = {"email": EMAIL, "email_verified": True}


@dataclass(frozen=True, slots=True)
class Provider:
    """What a provider publishes, its claims at a first sign-in and later, and who signs in."""

    path: str
    kid: str
    control: str
    sub: str
    first: dict[str, Any]
    user: tuple[str, str | None, bool]
    """Name, email and whether it is proven, after the first sign-in."""
    later: dict[str, Any]
    then: tuple[str, str | None, bool]
    jwk: dict[str, Any] = field(default_factory=dict)
    others: tuple[dict[str, Any], ...] = ()
    jwks: str = "/jwks"
    input: dict[str, Any] = field(default_factory=dict)


PROVIDERS = {
    "Google": Provider(
        "", "c8ab71530972bba20b49f78a09c9852c43ff9118",
        "public, max-age=19845, must-revalidate, no-transform", "112233445566778899001",
        {**ANA_SOUZA, "azp": CLIENT, "email": EMAIL, "email_verified": False, "at_hash": "x9"},
        ("Ana Souza", EMAIL, False), PROVEN, ("Ana Souza", EMAIL, True),
        {"alg": "RS256", "use": "sig"}, jwks="/oauth2/v3/certs",
    ),
    "Apple": Provider(
        "", "86D88Kf", "no-store", "001999.0f3b6c2d4e5f4a7b8c9d0e1f2a3b4c5d.1042",
        {"email": RELAY, "email_verified": "false", "is_private_email": "true",
         "nonce_supported": True, "auth_time": 1_790_000_000},
        ("Ana Souza", RELAY, False), {"email": RELAY, "email_verified": "true"},
        ("Ana Souza", RELAY, True), {"alg": "RS256"}, jwks="/auth/keys",
        input={"name": " Ana\tSouza "},
    ),
    "Entra": Provider(
        f"/{TENANT}/v2.0", "nOo3ZDrODXEK1jKWhXslHR_KXEg", "max-age=86400, private",
        "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ",
        {"tid": TENANT, "oid": "00000000-0000-0000-66f3-3332eca7ea81", "ver": "2.0", "aio": "Df2",
         "preferred_username": "ana@example.onmicrosoft.com", "rh": "0.AQ", "nbf": 1_700_000_000},
        ("ana@example.onmicrosoft.com", None, False),
        {"tid": TENANT, "email": EMAIL, "xms_edov": True, "name": "Ana Souza"},
        ("ana@example.onmicrosoft.com", EMAIL, True),
        {"x5t": "nOo3ZDrODXEK1jKWhXslHR_KXEg", "x5c": ["MIIC"], "issuer": "{tenantid}"},
        jwks="/common/discovery/v2.0/keys",
    ),
    "Keycloak": Provider(
        "/realms/shop", "FJ86GcF3jTbNLOco4NvZkUCIUmfYCqoqtOQeMfbhNlE", "no-cache",
        "b7afc098-30ce-43c7-acbf-043ab484a777",
        {"typ": "ID", "azp": CLIENT, "acr": "1", "preferred_username": "ana.souza",
         "email": EMAIL, "email_verified": False, "given_name": "Ana", "family_name": "Souza"},
        ("Ana Souza", EMAIL, False), PROVEN, ("Ana Souza", EMAIL, True),
        {"alg": "RS256", "x5c": ["MIIC"]},
        ({"kty": "RSA", "use": "enc", "alg": "RSA-OAEP", "n": "AQAB", "e": "AQAB",
          "kid": "FJ86GcF3jTbNLOco4NvZkUCIUmfYCqoqtOQeMfbhNlE"},),
        "/realms/shop/protocol/openid-connect/certs",
    ),
    "Auth0": Provider(
        "/", "NEE1QURBOTM4MzI5RkFDNTYxOTU1MDg2ODgwQ0UzMTk1QjYyRkRFQw",
        "public, max-age=15, stale-while-revalidate=15, stale-if-error=86400",
        "auth0|5f7c8ec7c33c6c004bbafe82",
        {"nickname": "ana", "name": EMAIL, "email": EMAIL, "email_verified": False, "sid": "s1"},
        ("ana", EMAIL, False), {**PROVEN, "name": EMAIL}, ("ana", EMAIL, True),
        {"alg": "RS256", "x5t": "NEE1", "x5c": ["MIIC"]}, jwks="/.well-known/jwks.json",
    ),
    "Cognito": Provider(
        "/us-east-1_pNZr5kIjj", "abcdefghijklmnop/qrst+uvwx=", "public, max-age=86400",
        "992b512f-130d-4da6-a9d3-a1a4227f82f5",
        {"token_use": "id", "cognito:username": "Google_1122", "given_name": "Ana",
         "email": EMAIL, "email_verified": "false", "identities": [{"primary": "true"}]},
        ("Ana", EMAIL, False), {"email": EMAIL, "email_verified": "true"}, ("Ana", EMAIL, True),
        {"alg": "RS256"}, jwks="/us-east-1_pNZr5kIjj/.well-known/jwks.json",
    ),
    "Okta": Provider(
        "/oauth2/default", "w_sjGTmwzgrGk5JvGtQ_7gjiTDf0nCCMf9bCvGsKxRk",
        "max-age=3888000, must-revalidate", "00uid4BxXw6I6TV4m0g3",
        {"ver": 1, "amr": ["pwd"], "idp": "00o1", "auth_time": 1_790_000_000},
        ("Cliente", None, False), {**PROVEN, "preferred_username": "ana@example.com"},
        ("ana@example.com", EMAIL, True), {"alg": "RS256"}, jwks="/oauth2/default/v1/keys",
    ),
    "Firebase": Provider(
        "/shop-42", "3494b1e786cdad092e423766bbe37f54ed87b22d",
        "public, max-age=22053, must-revalidate, no-transform", "VQrJ3mN0cWZ8yKq1tXbLzH2pD5f1",
        {"user_id": "VQrJ3mN0cWZ8yKq1tXbLzH2pD5f1", "auth_time": 1_790_000_000,
         "firebase": {"identities": {}, "sign_in_provider": "anonymous"}},
        ("Cliente", None, False),
        {**PROVEN, "name": "Ana Souza", "firebase": {"identities": {"email": [EMAIL]}}},
        ("Ana Souza", EMAIL, True), {"alg": "RS256"}, ({"kty": "RSA", "kid": "old"},),
        "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com",
    ),
}  # fmt: skip


async def published(shop: Shop, issuer: Issuer, provider: Provider) -> None:
    """Publish what the provider does, and have the store trust it."""
    issuer.url += provider.path
    issuer.only(provider.kid, spare(0))
    issuer.shape |= provider.jwk
    issuer.others, issuer.jwks, issuer.control = [*provider.others], provider.jwks, provider.control
    trusted = ["example.com", "privaterelay.appleid.com"]
    await change_idp(shop, issuer, trustedDomains=trusted)


def later(shop: Shop, issuer: Issuer, seconds: float) -> None:
    """Let time pass for the cached keys of a provider."""
    known = shop.api.site.app[STOREFRONT].providers._known[issuer.url]
    known.tried_at -= seconds
    known.keys_until -= seconds
    known.address_until -= seconds


def user_in(answer: Answer) -> tuple[str, tuple[str, str | None, bool]]:
    user = answer.data["clientIdpLogin"]["user"]
    return user["id"], (user["name"], user["email"], user["emailVerified"])


@ONE
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_provider_as_it_really_is(idp_shop: Shop, issuer: Issuer, name: str) -> None:
    it, minute = PROVIDERS[name], idp_keys.REFETCH_SECONDS
    await published(idp_shop, issuer, it)
    nobody = {"email": None, "email_verified": None, "name": None, "sub": it.sub}

    def token(kid: str | None = it.kid, signer: str | None = None, **claims: Any) -> str:
        header = {"alg": "RS256"} | ({} if kid is None else {"kid": kid})
        named = (kid or "") if signer is None else signer
        return issuer.sign(header, issuer.claims(**(nobody | claims)), named)

    async def told(sent: str, **more: Any) -> str:
        answer = await enter(idp_shop.browser(), sent, **more)
        return answer.code if "errors" in answer.body else user_in(answer)[0]

    # The first sign-in, and the proof that comes later.
    customer, user = user_in(await enter(idp_shop.browser(), token(**it.first), **it.input))
    assert user == it.user
    asked = len(issuer.requests)
    assert user_in(await enter(idp_shop.browser(), token(**it.later))) == (customer, it.then)
    # What was known stays, whatever a token lacks.
    assert user_in(await enter(idp_shop.browser(), token())) == (customer, it.then)
    assert len(issuer.requests) == asked
    # Another key under the same id, under none, and under a new one.
    for number, kid in enumerate((it.kid, None, "next key ✓"), start=1):
        issuer.only(kid, spare(number))
        assert await told(token(kid)) == "INVALID_TOKEN"
        assert len(issuer.requests) == asked
        later(idp_shop, issuer, minute)
        assert await told(token(kid)) == customer
        asked = len(issuer.requests)
    # The keys move: the old address fails, or still has the old ones.
    for number, answers in enumerate((False, True)):
        if answers:
            issuer.left[issuer.jwks] = issuer.published()
        issuer.jwks = f"/moved/{number}"
        issuer.only(f"moved-{number}", spare(number))
        later(idp_shop, issuer, minute)
        assert await told(token(f"moved-{number}")) == customer
    # An outage: the known key stays, and nobody can tell whether an unknown one is right.
    issuer.failures = 1_000
    later(idp_shop, issuer, minute)
    issuer.keys["unknown"] = spare(3)
    assert await told(token("unknown")) == "UNAVAILABLE"
    later(idp_shop, issuer, 80_000)
    assert await told(token("moved-1")) == customer
    assert (await idp_shop.db.read(counts))["customers"] == 1


@ONE
async def test_invented_key_ids_cost_one_fetch_a_minute(idp_shop: Shop, issuer: Issuer) -> None:
    assert (await enter(idp_shop.browser(), issuer.token())).data
    known = issuer.claims()
    issuer.keys |= {f"k{n}": spare(0) for n in range(12)}
    public = dict(issuer.keys)
    tokens = [issuer.sign({"alg": "RS256", "kid": f"k{n}"}, known, f"k{n}") for n in range(12)]
    issuer.keys = {"rsa": public["rsa"]}
    for minutes in (0, 1, 1):
        later(idp_shop, issuer, 60.0 * minutes)
        asked = len(issuer.requests)
        answers = await asyncio.gather(*(enter(idp_shop.browser(), token) for token in tokens))
        assert {answer.code for answer in answers} == {"INVALID_TOKEN"}
        # The keys at the known address, and the discovery whether they moved.
        assert len(issuer.requests) - asked == 2 * minutes


@ONE
async def test_keys_on_a_host_that_hangs_are_found_elsewhere(
    idp_shop: Shop, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await enter(idp_shop.browser(), issuer.token())).data
    monkeypatch.setattr(idp_keys, "SECONDS", 1.0)

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1") as server:
        known = idp_shop.api.site.app[STOREFRONT].providers._known[issuer.url]
        known.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"
        issuer.keys["new"] = spare(0)
        later(idp_shop, issuer, 60.0)
        assert (await enter(idp_shop.browser(), issuer.token("new"))).data


def packed(bits: int) -> Any:
    """Return a compression of zlib: raw for negative bits."""

    def pack(text: bytes) -> bytes:
        stream = zlib.compressobj(wbits=bits)
        return stream.compress(text) + stream.flush()

    return pack


GOOD, FORGED, DOWN = "", "INVALID_TOKEN", "UNAVAILABLE"
BODIES: dict[str, tuple[Any, str, str]] = {
    "gzip": (gzip.compress, "gzip", GOOD),
    "gzip that nobody declares": (gzip.compress, "", GOOD),
    "x-gzip": (gzip.compress, "x-gzip", GOOD),
    "deflate": (packed(15), "deflate", GOOD),
    "deflate without its header": (packed(-15), "deflate", GOOD),
    "an encoding of another name": (lambda text: text, "br", DOWN),
    "gzip in name only": (lambda text: text, "gzip", GOOD),
    "gzip without its end": (lambda text: gzip.compress(text)[:-9], "gzip", DOWN),
    "a large document in a small one": (lambda text: gzip.compress(b" " * 3_000_000), "", DOWN),
    "a byte order mark": (lambda text: b"\xef\xbb\xbf" + text, "", GOOD),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "", GOOD),
    "a page": (lambda text: b"<!doctype html><title>Sign in</title>", "", DOWN),
}  # fmt: skip


@ONE
@pytest.mark.parametrize("case", BODIES)
async def test_documents_in_other_forms(idp_shop: Shop, issuer: Issuer, case: str) -> None:
    change, coding, code = BODIES[case]
    public = [key.as_dict(private=False) | {"kid": kid} for kid, key in issuer.keys.items()]
    issuer.body = change(json.dumps({"keys": public}).encode())
    if coding:
        issuer.headers["Content-Encoding"] = coding
    answer = await enter(idp_shop.browser(), issuer.token())
    assert (answer.code if "errors" in answer.body else GOOD) == code


RSA = spare(0).as_dict(private=False)
ENTRIES: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "empty members": ({"use": "", "alg": "", "key_ops": []}, [], GOOD),
    "members of null": ({}, [{**RSA, "kid": "it", "use": None, "alg": None}], GOOD),
    "for encryption": ({"use": "enc"}, [], DOWN),
    "for encryption by its verbs": ({"use": None, "key_ops": ["encrypt", "wrapKey"]}, [], DOWN),
    "for signatures by its verbs": ({"use": None, "key_ops": ["verify"]}, [], GOOD),
    "of another algorithm": ({"alg": "RS512"}, [], FORGED),
    "a certificate alone": ({"n": None, "e": None, "x5c": ["MIIC"]}, [], DOWN),
    "kinds that nobody knows": ({}, [
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA", "kid": "it"}, {"kty": 5}, {}, None, "x",
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "it"},
        {"kty": "OKP", "crv": "X25519", "x": "AA", "kid": "it"}, {"kty": "RSA", "kid": "it"},
    ], GOOD),
    "one id for three algorithms": ({"alg": "RS384"}, [
        {**RSA, "kid": "it", "alg": "RS512"}, {**RSA, "kid": "it", "alg": "RS256"},
    ], GOOD),
    "one id for encryption and signatures": ({}, [
        {**spare(1).as_dict(private=False), "kid": "it", "use": "enc", "alg": "RSA-OAEP"},
    ], GOOD),
    "one id for two keys": ({}, [{**spare(1).as_dict(private=False), "kid": "it"}], GOOD),
    "no id": ({"kid": None}, [], GOOD),
    "no id, twice the same key": ({"kid": None}, [RSA], GOOD),
    "no id among two keys": ({"kid": None}, [spare(1).as_dict(private=False)], FORGED),
    "padded base64 of the other alphabet": (
        {"n": str(RSA["n"]).replace("-", "+").replace("_", "/") + "=="}, [], GOOD,
    ),
}  # fmt: skip


@ONE
@pytest.mark.parametrize("case", ENTRIES)
async def test_entries_of_a_key_set(idp_shop: Shop, issuer: Issuer, case: str) -> None:
    shape, others, code = ENTRIES[case]
    issuer.only("it", spare(0))
    issuer.shape |= shape
    issuer.others = others
    token = issuer.sign({"alg": "RS256", "kid": "it"}, issuer.claims(), "it")
    answer = await enter(idp_shop.browser(), token)
    assert (answer.code if "errors" in answer.body else GOOD) == code


@ONE
@pytest.mark.parametrize("alg", ["EdDSA", "Ed25519"])
async def test_ed25519_has_two_names(idp_shop: Shop, issuer: Issuer, alg: str) -> None:
    issuer.keys = {"ed": issuer.keys["ed"]}
    for listed in ("EdDSA", "Ed25519", None):
        issuer.shape["alg"] = listed
        idp_shop.api.site.app[STOREFRONT].providers._known.clear()
        assert (await enter(idp_shop.browser(), issuer.token("ed", alg))).data


@ONE
async def test_an_app_that_is_not_listed_is_named(idp_shop: Shop, issuer: Issuer) -> None:
    """Google's library of Android signs for the server's id, on behalf of the app's own."""
    app = "407408718192.apps.googleusercontent.com"
    answer = await enter(idp_shop.browser(), issuer.token(azp=app))
    assert (answer.code, app in answer.error["message"]) == ("INVALID_TOKEN", True)
    await change_idp(idp_shop, issuer, clientIds=[CLIENT, app])
    assert (await enter(idp_shop.browser(), issuer.token(azp=app))).data


LONG = "Ana 👩‍💻 " * 60


@pytest.mark.parametrize(("claims", "name"), [
    ({"name": "Ana", "given_name": "B"}, "Ana"),
    ({"name": " ", "given_name": "Ana", "family_name": "Souza"}, "Ana Souza"),
    ({"family_name": "Souza", "nickname": "aninha"}, "Souza"),
    ({"name": 7, "given_name": None, "nickname": "aninha"}, "aninha"),
    ({"nickname": "\u200b", "preferred_username": "ana.s"}, "ana.s"),
    ({"name": "Ana\r\nBcc: x@y.z\x00\x1b[31m"}, "Ana Bcc: x@y.z [31m"),
    ({"name": "\u202eanA\u202c\u2028Souza\u00a0"}, "anA Souza"),
    ({"name": "José 👩‍💻"}, "José 👩‍💻"),
    ({"name": LONG}, LONG[:200].strip()),
    ({"name": "x" * 100_000}, "x" * 200),
    ({"name": "a@b.co", "email": "a@b.co", "nickname": "a"}, "a"),
    ({"name": "a@b.co", "email": "a@b.co"}, "a@b.co"),
    ({"name": {}, "preferred_username": []}, None),
])  # fmt: skip
def test_names_of_tokens(claims: dict[str, Any], name: str | None) -> None:
    assert _name_in(claims) == name


@pytest.mark.parametrize(("claims", "proven"), [
    ({"tid": TENANT, "xms_edov": True}, True), ({"tid": TENANT, "xms_edov": "1"}, True),
    ({"tid": TENANT, "xms_edov": 1}, True), ({"tid": TENANT, "xms_edov": "true"}, True),
    ({"tid": TENANT, "xms_edov": False}, False), ({"tid": TENANT, "xms_edov": "0"}, False),
    ({"tid": TENANT, "xms_edov": [1]}, False), ({"tid": TENANT}, False),
    ({"xms_edov": True}, False), ({"tid": "other", "xms_edov": True}, False),
    ({"tid": TENANT, "xms_edov": True, "email_verified": False}, False),
    ({"email_verified": "true"}, True), ({"email_verified": 1}, False),
    ({"email_verified": "True"}, False), ({"email_verified": [True]}, False),
])  # fmt: skip
def test_proofs_of_emails(claims: dict[str, Any], proven: bool) -> None:
    issuer = f"https://login.microsoftonline.com/{TENANT}/v2.0"
    assert _is_proven(claims, {"issuer": issuer}) is proven


@ONE
async def test_subjects_are_any_text(idp_shop: Shop, issuer: Issuer) -> None:
    ids = {
        user_in(await enter(idp_shop.browser(), issuer.token(sub=sub, email=None)))[0]
        for sub in ("google-oauth2|1", "google-oauth2|1 ", "👩‍💻" * 50, "a\nb'; --", "é", "e\u0301",
                    "x" * 255)
    }  # fmt: skip
    assert len(ids) == 7
    assert (await enter(idp_shop.browser(), issuer.token(sub="x" * 256))).code == "INVALID_TOKEN"


async def test_a_proven_email_never_merges_two_accounts(
    idp_posting: Shop, issuer: Issuer, box: Mailbox
) -> None:
    owner = idp_posting.browser()
    await sign_up(owner)
    await box.next()
    other = user_in(await enter(idp_posting.browser(), issuer.token(email=None)))[0]
    for _ in range(2):
        again = user_in(await enter(idp_posting.browser(), issuer.token(email=ANA["email"])))
        assert again == (other, ("Ana Souza", None, False))
    # An email of nobody is taken, and one that is not proven is asked for; another one changes
    # neither.
    bia = issuer.token(email="bia@exämple.org")
    assert user_in(await enter(idp_posting.browser(), bia))[1][1:] == ("bia@exämple.org", False)
    assert (await box.next(2))["To"] == "bia@exämple.org"
    eve = issuer.token(email="eve@example.com")
    assert user_in(await enter(idp_posting.browser(), eve))[1][1:] == ("bia@exämple.org", False)
    # The proof of the other spelling is the proof of the same mailbox.
    await change_idp(idp_posting, issuer, trustedDomains=["EXÄMPLE.org"])
    same = issuer.token(email="bia@xn--exmple-cua.org")
    assert user_in(await enter(idp_posting.browser(), same))[1][1:] == ("bia@exämple.org", True)
    contacts = (await idp_posting.owner.get("/api/contacts?search=bia")).body["data"]
    assert [contact["name"] for contact in contacts] == ["Ana Souza"]
    assert (await idp_posting.db.read(counts))["customers"] == 2


async def test_one_of_two_accounts_gets_the_email_of_both(idp_shop: Shop, issuer: Issuer) -> None:
    subs = [f"s{n}" for n in range(4)]
    first = [await enter(idp_shop.browser(), issuer.token(sub=s, email=None)) for s in subs]
    again = await asyncio.gather(
        *(enter(idp_shop.browser(), issuer.token(sub=sub)) for sub in subs)
    )
    assert [user_in(one)[0] for one in again] == [user_in(one)[0] for one in first]
    emails = [user_in(one)[1][1:] for one in again]
    assert sorted(emails, key=str) == [(EMAIL, True)] + [(None, False)] * 3


async def test_an_erased_customer_begins_again(idp_shop: Shop, issuer: Issuer) -> None:
    await change_idp(idp_shop, issuer)
    path = f"/api/stores/{idp_shop.store['id']}"
    assert (await idp_shop.owner.put(path, {"language": "en"})).status == 200
    token = issuer.token(name=None)
    first, user = user_in(await enter(idp_shop.browser(), token))
    assert user == ("Customer", EMAIL, False)
    [client] = (await idp_shop.owner.get("/api/clients")).body["data"]
    assert (await idp_shop.owner.delete(f"/api/clients/{client['id']}")).status == 200
    assert user_in(await enter(idp_shop.browser(), token))[0] != first

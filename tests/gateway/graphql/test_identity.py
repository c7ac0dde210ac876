"""Signing in with an identity provider: a real one on loopback, forged tokens, and the links."""

import asyncio
import time
from typing import Any

import pytest

from gateway.domain.storefront.sign_in import idp_keys
from gateway.domain.storefront.sign_in.idp_tokens import GOOGLE, _is_trusted
from gateway.server.storefront import STOREFRONT
from outbox.database.transaction import Database, Tx
from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up, user_of
from tests.support.issuer import CLIENT, Issuer
from tests.support.mailbox import Mailbox, bodies
from tests.support.shop import Answer, Browser, Shop, opened
from tests.system.test_forgeries import forged, forged_sessions

pytestmark = pytest.mark.usefixtures("duties_look_often")


async def enter(browser: Browser, token: str, **more: Any) -> Answer:
    selection = "token user { id name email emailVerified }"
    return await browser.do("clientIdpLogin", selection, token=token, **more)


async def change_idp(shop: Shop, issuer: Issuer, **idp: Any) -> None:
    provider = {"issuer": issuer.url, "clientIds": [CLIENT], **idp}
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"idps": [provider]})).status == 200


async def verified(tx: Tx) -> None:
    await tx.run("update customers set email_verified = true")


async def counts(tx: Tx) -> dict[str, int]:
    found = {}
    for table in ("customers", "customer_identities", "customer_sessions"):
        row = await tx.one(f"select count(*) as n from {table}")
        assert row is not None
        found[table] = row["n"]
    return found


# The linking matrix, row by row.


async def test_an_untrusted_email_makes_an_unverified_account(
    idp_shop: Shop, issuer: Issuer
) -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"email_verified": False}, {"email_verified": None}, {"email_verified": "false"},
        {"email_verified": 1}, {"email": "ana@elsewhere.example"},
    )  # fmt: skip
    for n, changed in enumerate(cases):
        token = issuer.token(**({"sub": f"s{n}", "email": f"a{n}@example.com"} | changed))
        user = (await enter(idp_shop.browser(), token)).data["clientIdpLogin"]["user"]
        assert user["emailVerified"] is False, changed
    # Google's samples have the text "true".
    token = issuer.token(sub="s9", email="a9@example.com", email_verified="true")
    user = (await enter(idp_shop.browser(), token)).data["clientIdpLogin"]["user"]
    assert user["emailVerified"] is True


async def test_a_token_without_an_email_makes_an_account_too(
    idp_shop: Shop, issuer: Issuer
) -> None:
    for changed in ({"email": None, "sub": "s1"}, {"email": "nonsense", "sub": "s2"}):
        answer = await enter(idp_shop.browser(), issuer.token(name=None, **changed))
        assert answer.data["clientIdpLogin"]["user"]["email"] is None
    assert (await idp_shop.owner.get("/api/contacts")).body["total"] == 0


async def test_a_trusted_domain_is_compared_as_idna(idp_shop: Shop, issuer: Issuer) -> None:
    await change_idp(idp_shop, issuer, trustedDomains=["Exämple.de"])
    for email in ("ana@exämple.de", "bia@xn--exmple-cua.de"):
        answer = await enter(idp_shop.browser(), issuer.token(email=email, sub=email[:3]))
        assert answer.data["clientIdpLogin"]["user"]["emailVerified"] is True


async def test_a_trusted_token_links_a_verified_account(idp_shop: Shop, issuer: Issuer) -> None:
    browser = idp_shop.browser()
    await sign_up(browser)
    await idp_shop.db.write(verified)
    answer = await enter(idp_shop.browser(), issuer.token())
    assert answer.data["clientIdpLogin"]["user"]["email"] == ANA["email"]
    # Nothing is taken from the account.
    assert await user_of(browser) is not None
    assert (await log_in(idp_shop.browser())).data
    assert (await idp_shop.db.read(counts))["customers"] == 1


async def test_a_trusted_token_takes_an_unverified_account_from_its_maker(
    idp_posting: Shop, issuer: Issuer, box: Mailbox
) -> None:
    maker = idp_posting.browser()
    await sign_up(maker, name="Eve")
    await box.next()
    await maker.do(
        "clientAddressSave", "address { id }", street="Rua", number="1", city="Rio", state="RJ",
        cep="20000000",
    )  # fmt: skip
    # Eve also links an account of her own.
    eve = issuer.token(sub="eve", email="eve@elsewhere.example")
    assert (await maker.do("clientLinkIdp", "token", token=eve)).data
    owner = idp_posting.browser()
    answer = await enter(owner, issuer.token())
    assert answer.data["clientIdpLogin"]["user"]["emailVerified"] is True
    assert await user_of(maker) is None
    assert (await log_in(maker)).code == "INVALID_CREDENTIALS"
    assert (await enter(maker, eve)).data["clientIdpLogin"]["user"]["email"] != ANA["email"]
    found = await owner.ask("client(hostname: $h) { addresses { id } }")
    assert found["client"]["addresses"] == []
    # The second one told of Eve's link.
    mail = await box.next(3)
    assert mail["To"] == ANA["email"]
    assert "secured" in mail["Subject"]


async def test_a_new_password_takes_an_unverified_account_from_its_maker(
    idp_posting: Shop, issuer: Issuer, box: Mailbox
) -> None:
    maker, owner = idp_posting.browser(), idp_posting.browser()
    await sign_up(maker, name="Eve")
    await box.next()
    eve = issuer.token(sub="eve", email="eve@elsewhere.example")
    assert (await maker.do("clientLinkIdp", "token", token=eve)).data
    linked = await box.next(2)
    assert linked["To"] == ANA["email"]
    assert "Another way to sign in" in linked["Subject"]
    assert "{store}" not in bodies(linked)[0]
    await owner.do("clientRequestPasswordReset", "success", email=ANA["email"])
    token = bodies(await box.next(3))[0].partition("token=")[2].split()[0]
    sent = {"token": token, "password": "segredo-2"}
    assert (await owner.do("clientResetPassword", "success", **sent)).data
    assert (await enter(maker, eve)).data["clientIdpLogin"]["user"]["email"] != ANA["email"]
    assert (await log_in(owner, password="segredo-2")).data


@pytest.mark.parametrize("proof", ["mail", "provider"])
async def test_a_new_password_ends_what_was_linked_to_a_proven_account(
    idp_posting: Shop, issuer: Issuer, box: Mailbox, proof: str
) -> None:
    maker, owner = idp_posting.browser(), idp_posting.browser()
    await sign_up(maker, name="Eve")
    first = bodies(await box.next())[0].partition("token=")[2].split()[0]
    eve = issuer.token(sub="eve", email="eve@elsewhere.example")
    count = 2
    if proof == "mail":
        assert (await maker.do("clientLinkIdp", "token", token=eve)).data
        # Ana follows the first mail, which also an account of somebody else brings her.
        assert (await owner.do("clientVerifyEmail", "success", token=first)).data
    else:
        await idp_posting.db.write(verified)
        assert (await enter(idp_posting.browser(), issuer.token())).data
        assert (await maker.do("clientLinkIdp", "token", token=eve)).data
        count += 1
    for number in range(2, count + 1):
        mail = await box.next(number)
        assert (mail["To"], "Another way" in mail["Subject"]) == (ANA["email"], True)
    await maker.do(
        "clientAddressSave", "address { id }", street="Rua", number="1", city="Rio", state="RJ",
        cep="20000000",
    )  # fmt: skip
    await owner.do("clientRequestPasswordReset", "success", email=ANA["email"])
    token = bodies(await box.next(count + 1))[0].partition("token=")[2].split()[0]
    sent = {"token": token, "password": "segredo-2"}
    assert (await owner.do("clientResetPassword", "success", **sent)).data
    assert (await idp_posting.db.read(counts))["customer_identities"] == 0
    assert (await enter(maker, eve)).data["clientIdpLogin"]["user"]["email"] != ANA["email"]
    assert (await log_in(owner, password="segredo-2")).data
    # The address of a proven account is its owner's.
    found = await owner.ask("client(hostname: $h) { addresses { id } }")
    assert len(found["client"]["addresses"]) == 1
    # A trusted provider links itself again, with a mail (one more: Eve's new account got its own).
    back = await enter(idp_posting.browser(), issuer.token())
    assert back.data["clientIdpLogin"]["user"]["email"] == ANA["email"]
    mails = [await box.next(count + 2), await box.next(count + 3)]
    assert any(one["To"] == ANA["email"] and "Another" in one["Subject"] for one in mails)
    # The same link again is no news.
    assert (await enter(idp_posting.browser(), issuer.token())).data
    assert (await idp_posting.db.read(counts))["customer_identities"] == 2


async def test_without_mail_an_unverified_account_needs_its_password(
    idp_shop: Shop, issuer: Issuer
) -> None:
    maker = idp_shop.browser()
    await sign_up(maker)
    assert (await enter(idp_shop.browser(), issuer.token())).code == "ACCOUNT_LINK_REQUIRED"
    assert await user_of(maker) is not None
    assert (await idp_shop.db.read(counts))["customer_identities"] == 0


@pytest.mark.parametrize(
    "changed", [{"email_verified": False}, {"email_verified": None}, {"email": "ana@other.example"}]
)
async def test_an_untrusted_token_needs_the_password_of_the_account(
    idp_posting: Shop, issuer: Issuer, changed: dict[str, Any]
) -> None:
    browser = idp_posting.browser()
    email = changed.get("email", ANA["email"])
    await sign_up(browser, email=email)
    await idp_posting.db.write(verified)
    token = issuer.token(**changed)
    other = idp_posting.browser()
    assert (await enter(other, token)).code == "ACCOUNT_LINK_REQUIRED"
    assert await user_of(other) is None
    # With the password it can be linked, and signs in from then on.
    assert (await browser.do("clientLinkIdp", "token", token=token)).data
    assert (await enter(other, token)).data["clientIdpLogin"]["user"]["email"] == email


async def test_google_is_trusted_for_its_own_domains(idp_shop: Shop, issuer: Issuer) -> None:
    """The rules of Google need its issuer, which is on no loopback: they are checked as a unit."""
    google = {"issuer": GOOGLE}
    proven = {"email_verified": True}
    assert _is_trusted("ana@gmail.com", proven, google)
    assert _is_trusted("ana@firm.example", proven | {"hd": "firm.example"}, google)
    assert not _is_trusted("ana@firm.example", proven, google)
    assert not _is_trusted("ana@firm.example", proven | {"hd": "other.example"}, google)
    assert not _is_trusted("ana@gmail.com", {}, google)
    assert not _is_trusted("ana@gmail.com", proven, {"issuer": issuer.url})


async def test_an_identity_belongs_to_one_account(idp_shop: Shop, issuer: Issuer) -> None:
    ana, bia = idp_shop.browser(), idp_shop.browser()
    await sign_up(ana)
    await sign_up(bia, email="bia@example.com")
    token = issuer.token(email_verified=False)
    assert (await ana.do("clientLinkIdp", "token", token=token)).data
    assert (await ana.do("clientLinkIdp", "token", token=token)).data
    assert (await bia.do("clientLinkIdp", "token", token=token)).code == "CONFLICT"
    nobody = idp_shop.browser()
    assert (await nobody.do("clientLinkIdp", "token", token=token)).code == "UNAUTHENTICATED"


async def test_linking_proves_the_email_of_the_account(idp_shop: Shop, issuer: Issuer) -> None:
    browser = idp_shop.browser()
    await sign_up(browser)
    answer = await browser.do("clientLinkIdp", "user { emailVerified }", token=issuer.token())
    assert answer.data["clientLinkIdp"]["user"]["emailVerified"] is True


async def test_identities_are_of_one_store(idp_shop: Shop, issuer: Issuer) -> None:
    first = await enter(idp_shop.browser(), issuer.token())
    body = {
        "hostname": "other.example", "name": "Other",
        "idps": [{"issuer": issuer.url, "clientIds": [CLIENT]}],
    }  # fmt: skip
    assert (await idp_shop.owner.post("/api/stores", body)).status == 201
    second = await enter(idp_shop.browser(), issuer.token(), hostname="other.example")
    ids = {a.data["clientIdpLogin"]["user"]["id"] for a in (first, second)}
    assert len(ids) == 2


async def test_first_sign_ins_at_once_make_one_account(idp_shop: Shop, issuer: Issuer) -> None:
    answers = await asyncio.gather(*(enter(idp_shop.browser(), issuer.token()) for _ in range(6)))
    assert len({a.data["clientIdpLogin"]["user"]["id"] for a in answers}) == 1
    found = await idp_shop.db.read(counts)
    assert found == {"customers": 1, "customer_identities": 1, "customer_sessions": 6}


# Tokens.


@pytest.mark.slow
async def test_forged_tokens(idp_shop: Shop, issuer: Issuer) -> None:
    await change_idp(idp_shop, issuer, nonceRequired=True, trustedDomains=["example.com"])
    browser = idp_shop.browser()
    kinds = forged(issuer)
    assert sum(map(len, kinds.values())) >= 60
    for kind, tokens in kinds.items():
        assert len(tokens) >= 4, kind
        for place, token in enumerate(tokens):
            answer = await enter(browser, token, nonce="n-1")
            assert answer.status == 200, (kind, place)
            assert answer.code == "INVALID_TOKEN", (kind, place, answer.body)
            assert not answer.cookies
    assert (await idp_shop.db.read(counts))["customers"] == 0
    # The same store takes the token that they imitate.
    assert (await enter(browser, issuer.token(nonce="n-1"), nonce="n-1")).data


@pytest.mark.slow
async def test_forged_session_tokens(shop: Shop) -> None:
    token = (await sign_up(shop.browser())).data["clientSignup"]["token"]
    tokens = shop.api.site.app[STOREFRONT].tokens
    stranger = shop.browser()
    query = f'{{ client(hostname: "{shop.hostname}") {{ user {{ name }} }} }}'
    for kind, forgeries in forged_sessions(token, tokens).items():
        assert len(forgeries) >= 4, kind
        for place, each in enumerate(forgeries):
            header: dict[str, Any] = {"Authorization": f"Bearer {each}"}
            answer = await stranger.send(query, **header)
            assert answer.code == "INVALID_TOKEN", (kind, place)
            # As a cookie it makes a visitor, because browsers keep cookies.
            found = await stranger.send(query, Cookie=f"authJwtClient={each}")
            assert found.data == {"client": {"user": None}}, (kind, place)
    header = {"Authorization": f"Bearer {token}"}
    assert (await stranger.send(query, **header)).data["client"]["user"] is not None


async def test_a_store_may_limit_the_age_of_a_token(idp_shop: Shop, issuer: Issuer) -> None:
    await change_idp(idp_shop, issuer, maxAgeSeconds=100)
    now = int(time.time())
    assert (await enter(idp_shop.browser(), issuer.token(iat=now - 150))).data
    assert (await enter(idp_shop.browser(), issuer.token(iat=now - 170))).code == "INVALID_TOKEN"


async def test_several_audiences_need_our_azp(idp_shop: Shop, issuer: Issuer) -> None:
    token = issuer.token(aud=["other", CLIENT], azp=CLIENT)
    assert (await enter(idp_shop.browser(), token)).data


async def test_a_required_nonce_signs_in_once(idp_shop: Shop, issuer: Issuer) -> None:
    await change_idp(idp_shop, issuer, nonceRequired=True)
    token = issuer.token(nonce="n-1")
    assert (await enter(idp_shop.browser(), token)).code == "INVALID_TOKEN"
    answers = await asyncio.gather(
        *(enter(idp_shop.browser(), token, nonce="n-1") for _ in range(5))
    )
    codes = sorted(a.code if "errors" in a.body else "in" for a in answers)
    assert codes == ["INVALID_TOKEN"] * 4 + ["in"]
    # The cookie of the page serves as well.
    browser = idp_shop.browser()
    document = (
        "mutation ($input: ClientIdpLoginMutationInput!)"
        " { clientIdpLogin(input: $input) { token } }"
    )
    values = {"input": {"hostname": idp_shop.hostname, "token": issuer.token(nonce="n-2")}}
    assert (await browser.send(document, values, Cookie="idpNonce=n-3")).code == "INVALID_TOKEN"
    assert (await browser.send(document, values, Cookie="idpNonce=n-2")).data


# Keys.


async def test_a_provider_that_fails_once_is_asked_again(idp_shop: Shop, issuer: Issuer) -> None:
    issuer.failures = 1
    assert (await enter(idp_shop.browser(), issuer.token())).data


async def test_a_provider_that_is_down_is_no_forgery(idp_shop: Shop, issuer: Issuer) -> None:
    issuer.failures = 10
    for _ in range(4):
        answer = await enter(idp_shop.browser(), issuer.token())
        assert answer.code == "UNAVAILABLE"
        assert answer.error["extensions"]["retryAfter"] == idp_keys.FAILED_SECONDS
    # It is left alone for some seconds.
    assert len(issuer.requests) == 2
    providers = idp_shop.api.site.app[STOREFRONT].providers
    issuer.failures = 0
    providers._known[issuer.url].tried_at -= idp_keys.FAILED_SECONDS
    assert (await enter(idp_shop.browser(), issuer.token())).data
    # Known keys stay in use while it fails.
    issuer.failures = 10
    # Their life, as the provider says, is over.
    providers._known[issuer.url].keys_until -= 600
    assert (await enter(idp_shop.browser(), issuer.token())).data


@pytest.mark.parametrize(
    "broken",
    [
        {"body": b"x"}, {"body": b"{}"}, {"body": b'{"keys": []}'}, {"body": b'{"keys": [1]}'},
        {"body": b'{"keys": [{"kty": "oct", "k": "AAAA", "kid": "rsa"}]}'},
        {"body": b'{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "rsa"}]}'},
        {"body": b'{"keys": "' + b"a" * 300_000 + b'"}'},
        {"discovery": {"issuer": "https://evil.example"}}, {"discovery": {"jwks_uri": 7}},
        {"discovery": {"jwks_uri": "file:///etc/passwd"}},
        {"discovery": {"jwks_uri": "http://10.0.0.1/jwks"}},
        {"discovery": {"jwks_uri": "http://169.254.169.254/jwks"}},
        {"redirect": "http://127.0.0.1:1/"},
    ],
)  # fmt: skip
async def test_broken_documents_of_a_provider(
    idp_shop: Shop, issuer: Issuer, broken: dict[str, Any]
) -> None:
    for name, value in broken.items():
        setattr(issuer, name, value)
    assert (await enter(idp_shop.browser(), issuer.token())).code == "UNAVAILABLE"


async def test_the_guard_refuses_a_provider_on_the_network(db: Database, issuer: Issuer) -> None:
    """Without a rule for loopback nothing is asked there."""
    async with opened(db, idps=[{"issuer": issuer.url, "clientIds": [CLIENT]}]) as shop:
        assert (await enter(shop.browser(), issuer.token())).code == "UNAVAILABLE"
        assert issuer.requests == []

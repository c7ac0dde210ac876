"""The header X-API-Version, and the header that names deprecated fields."""

import pytest
from multidict import CIMultiDict

from gateway.graphql.request_checks import RELEASES, effective_version
from gateway.records.errors import Refusal
from tests.support.shop import Shop

NEWEST = RELEASES[-1]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("2026-01-01", "2026-01-01"), ("2026-10-31", "2026-01-01"), ("2026-11-01", "2026-11-01"),
        ("2026-12-31", NEWEST), ("2999-01-01", NEWEST), ("2025-12-31", "2026-01-01"),
        ("0001-01-01", "2026-01-01"), (" 2026-11-01 ", "2026-11-01"),
    ],
)  # fmt: skip
def test_a_date_selects_the_newest_release_up_to_it(wanted: str, found: str) -> None:
    assert effective_version(CIMultiDict({"X-API-Version": wanted})) == found


@pytest.mark.parametrize(
    "wanted",
    ["", "2026", "2026-1-1", "2026-13-01", "2026-02-30", "01-11-2026", "2026/11/01", "latest",
     "2026-11-01T00:00:00Z", "２026-11-01", "2026-11-01, 2026-01-01"],
)  # fmt: skip
def test_anything_else_is_refused(wanted: str) -> None:
    with pytest.raises(Refusal) as refused:
        effective_version(CIMultiDict({"X-API-Version": wanted}))
    assert refused.value.code == "invalid_api_version"


async def test_the_response_names_the_effective_date(shop: Shop) -> None:
    browser = shop.browser()
    assert (await browser.send("{ __typename }")).headers["X-API-Version"] == NEWEST
    old = await browser.send("{ __typename }", X_API_Version="2026-05-05")
    assert old.headers["X-API-Version"] == "2026-01-01"
    for accept in ("application/json", "application/graphql-response+json"):
        refused = await browser.send("{ __typename }", X_API_Version="soon", Accept=accept)
        assert (refused.status, refused.code) == (400, "INVALID_API_VERSION")
        assert refused.error["extensions"]["field"] == "X-API-Version"


async def test_deprecated_fields_are_named(shop: Shop) -> None:
    browser = shop.browser()
    text = """query ($h: String!) {{ products(hostname: $h) {{ nodes {{ {} }} }} }}
        fragment P on Product {{ old: groups {{ id }} }}"""
    for selection, named in (
        ("...P", "Product.groups"), ("groups { id } ...P", "Product.groups"),
        ("... on Product { groups { id } } ...P", "Product.groups"),
    ):  # fmt: skip
        for _ in range(2):  # the second time from the kept document
            answer = await browser.send(text.format(selection), {"h": shop.hostname})
            assert answer.headers["X-API-Deprecated-Fields"] == named
    plain = await browser.send("query ($h: String!) { products(hostname: $h) { totalCount } }",
                               {"h": shop.hostname})  # fmt: skip
    assert "X-API-Deprecated-Fields" not in plain.headers


async def test_the_introspection_of_the_contract(shop: Shop) -> None:
    """Section 'Authentication' and 'Versioning' of the contract: groups is deprecated."""
    answer = await shop.browser().send(
        '{ __type(name: "Product") { fields(includeDeprecated: true)'
        " { name isDeprecated deprecationReason } } }"
    )
    fields = {field["name"]: field for field in answer.data["__type"]["fields"]}
    assert fields["groups"]["isDeprecated"] is True
    assert fields["groups"]["deprecationReason"] == "Use categories"
    assert fields["categories"]["isDeprecated"] is False

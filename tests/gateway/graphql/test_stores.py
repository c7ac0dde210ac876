"""The store of a hostname."""

from tests.support.operations import operation
from tests.support.shop import Shop


async def test_store_of_a_hostname(shop: Shop) -> None:
    found = await shop.browser().ask("store(hostname: $h) { id name hostname }")
    assert found["store"]["name"] == "Coffee Shop"
    assert found["store"]["hostname"] == "shop.example"


async def test_unknown_hostname(shop: Shop) -> None:
    answer = await shop.browser().send('{ store(hostname: "none.example") { id } }')
    assert answer.status == 200
    assert answer.body["data"] == {"store": None}
    assert answer.code == "STORE_NOT_FOUND"
    assert answer.error["extensions"]["field"] == "hostname"


async def test_aliases_and_spellings_name_the_store(shop: Shop) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"aliases": ["www.shop.example"]})).status == 200
    for name in ("www.shop.example", "SHOP.example.", "shop.example:8443"):
        answer = await shop.browser().send(f'{{ store(hostname: "{name}") {{ hostname }} }}')
        assert answer.data["store"]["hostname"] == "shop.example"


async def test_a_hostname_belongs_to_one_store(shop: Shop) -> None:
    other = await shop.api.person()
    for body in (
        {"hostname": "Shop.Example", "name": "Copy"},
        {"hostname": "copy.example", "name": "Copy", "aliases": ["shop.example"]},
    ):
        refused = await other.post("/api/stores", body)
        assert refused.status == 409
        assert "taken" in refused.faults.values()


async def test_the_documented_operation(shop: Shop) -> None:
    found = (await shop.browser().send(*operation("store"))).data["store"]
    assert (found["name"], found["hostname"]) == ("Coffee Shop", "shop.example")

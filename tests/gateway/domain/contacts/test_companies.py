"""Tests the rules of companies over HTTP: the CNPJ and the search."""

from tests.support.rest import Person


async def test_a_valid_cnpj_is_returned_unchanged(ana: Person) -> None:
    for cnpj in ("12ABC34501DE-35", "00000000000191", "12.abc.345/01de-35"):
        record = (await ana.post("/api/companies", {"name": "Acme", "cnpj": cnpj})).body
        assert record["cnpj"] == cnpj
        page = await ana.get(f"/api/companies?cnpj={cnpj}")
        assert page.body["data"][0]["id"] == record["id"]

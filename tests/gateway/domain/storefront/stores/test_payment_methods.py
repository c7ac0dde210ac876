"""The methods of payment of stores from before a store had any."""

from gateway.domain.storefront.stores.stores import STORES
from tests.architecture.tree import ROOT

[MIGRATION] = (ROOT / "gateway" / "migrations").glob("*_payments.sql")


def test_an_installed_store_accepts_what_it_accepted() -> None:
    """Every method, as a new store does."""
    default = STORES.named["paymentMethods"].default
    assert default == '["pix","boleto","card","transfer","cash"]'
    assert f"default '{default}'" in MIGRATION.read_text()

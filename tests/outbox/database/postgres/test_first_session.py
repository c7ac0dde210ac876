"""The line about a pooler that gives each transaction another session."""

import pytest

from outbox.database.postgres.first_session import shared
from outbox.database.postgres.hosts import Hosts


@pytest.mark.parametrize(
    ("host", "past"),
    [
        ("ep-a-1-pooler.eu-central-1.aws.neon.tech", "ep-a-1.eu-central-1.aws.neon.tech"),
        ("aws-0-eu-central-1.pooler.supabase.com:6543", "port 5432 of aws-0"),
        ("crm.proxy-abc.eu-west-1.rds.amazonaws.com", "not of RDS Proxy"),
        ("bouncer:6432", "PostgreSQL itself, or use"),
    ],
)
def test_a_hosted_pooler_has_a_way_past_it(host: str, past: str) -> None:
    line = shared(Hosts(f"postgresql://ana:se%40cret@{host}/crm"))
    assert "set database.direct_url" in line
    assert past in line
    assert "cret" not in line

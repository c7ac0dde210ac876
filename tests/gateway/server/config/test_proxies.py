"""`[egress] proxies`: what the operator may write, and what an error never repeats."""

import pytest

from gateway.server.config import ConfigFaults, load

VARIABLE = "CARTEIRO_EGRESS__PROXIES"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("http://ana:hunter2@proxy:3128", "entry 1 must be name=http://"),
        ("office=https://ana:hunter2@proxy:3128", "office must be http://host:port"),
        ("a=http://x:1, a=http://ana:hunter2@y:1", "appears twice"),
    ],
)
def test_a_wrong_entry_is_named_without_its_password(text: str, says: str) -> None:
    with pytest.raises(ConfigFaults) as raised:
        load(None, {VARIABLE: text})
    assert says in str(raised.value)
    assert "hunter2" not in str(raised.value)

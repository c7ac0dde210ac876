"""Creates accounts with what each begins with."""

from typing import Any

from gateway.domain.accounts import users
from gateway.domain.sales import pipelines
from gateway.records.values import zones
from outbox.database.transaction import Row, Tx


async def create(tx: Tx, spoken: str, /, *, timezone: str = zones.DEFAULT, **values: Any) -> Row:
    """Create an account whose stages are in the language `spoken`; return its row.

    `values` are those of users.made. Raises conflict.
    """
    user = await users.made(tx, timezone=timezone, **values)
    await pipelines.begin(tx, user["id"], spoken)
    return user

"""Changes the e-mail address of an account, once its new address has confirmed it."""

from gateway.domain.accounts import account_mails, account_tokens, users
from gateway.domain.accounts.account_tokens import Opened
from gateway.domain.queued_mail import Facts
from gateway.records.audit import Actor
from outbox.database.transaction import Tx


async def request(tx: Tx, actor: Actor, email: str, facts: Facts) -> None:
    """Queue a link to the new address, and a notice to the one of the account.

    Whether another account has the address is not said before somebody there opens the link.
    """
    facts = {**facts, "email": email}
    await account_mails.add(tx, actor.owner_id, "email_confirm", facts, address=email)
    await account_mails.add(tx, actor.owner_id, "email_requested", facts)


async def confirm(tx: Tx, token: str, facts: Facts) -> Opened:
    """Use a token to set the new address; links that were sent before end.

    Raises forbidden for an unknown, used or expired token, conflict when another account has the
    address.
    """
    change = await account_tokens.take(tx, "email", token)
    assert change.new_email is not None, "every token of this kind has one"
    facts = {**facts, "email": change.new_email}
    await account_mails.add(tx, change.owner_id, "email_changed", facts, address=change.email)
    await users.set_email(
        tx, change.owner_id, change.new_email, Actor(change.owner_id, "system", cause="mail")
    )
    return change

"""Resolves what customers do with their own accounts: data, passwords, addresses, the end."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.storefront.orders import order_addresses
from gateway.domain.storefront.privacy import customer_erasure, customer_export
from gateway.domain.storefront.sign_in import account_changes, customer_passwords
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.graphql.fields.account import forget, greet
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.errors import Refusal

Payload = dict[str, Any]
NO_MAIL = "This server sends no mails, so it cannot reset passwords; its operator sets [mail] host."


async def update(visit: RequestContext, args: Args) -> Payload:
    """Change name, phone and marketing."""
    visitor = await _customer(visit, args)
    return {"user": await visit.write(account_changes.update, visitor, args)}


async def change_password(visit: RequestContext, args: Args) -> Payload:
    """Change the password; only this browser stays signed in."""
    visitor = await _customer(visit, args)
    _must_do(args["newPassword"], "newPassword")
    checked = await _checked(visit, visitor, args["currentPassword"], "currentPassword")
    hashed = await visit.storefront.passwords.hash(args["newPassword"], visit.address)
    done = await visit.write(
        account_changes.change_password, visitor, checked, hashed, visitor.cart_token
    )
    return greet(visit, args["hostname"], done)


async def request_reset(visit: RequestContext, args: Args) -> Payload:
    """Send the mail for a new password."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    if not visit.storefront.mails:
        raise Refusal("unavailable", NO_MAIL)
    visit.storefront.resets.begin(visit.address, visitor.store.id)
    await visit.write(account_changes.request_reset, visitor.store.id, args["email"])
    return {"success": True}


async def reset_password(visit: RequestContext, args: Args) -> Payload:
    """Set a new password with the token of the mail."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    _must_do(args["password"], "password")
    visit.storefront.resets.begin(visit.address, visitor.store.id)
    hashed = await visit.storefront.passwords.hash(args["password"], visit.address)
    await visit.write(account_changes.reset_password, visitor, args["token"], hashed)
    return {"success": True}


async def verify_email(visit: RequestContext, args: Args) -> Payload:
    """Verify the email with the token of the mail."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    await visit.write(account_changes.verify_email, visitor, args["token"])
    return {"success": True}


async def save_address(visit: RequestContext, args: Args) -> Payload:
    """Create or change an address."""
    visitor = await _customer(visit, args)
    customer_id = visitor.must_be_customer()
    values = order_addresses.check(args)
    saved = await visit.write(order_addresses.save, visitor, args.get("id"), values)
    return {"address": saved, "addresses": await visit.read(order_addresses.listed, customer_id)}


async def delete_address(visit: RequestContext, args: Args) -> Payload:
    """Delete an address."""
    visitor = await _customer(visit, args)
    await visit.write(order_addresses.delete, visitor, args["id"])
    return {"success": True}


async def export(visit: RequestContext, args: Args) -> Payload:
    """Return all data of the customer."""
    visitor = await _customer(visit, args)
    visit.storefront.exports.begin(visitor.must_be_customer())
    return {"data": await customer_export.export(visit.read, visitor), "success": True}


async def delete_account(visit: RequestContext, args: Args) -> Payload:
    """Erase the account."""
    visitor = await _customer(visit, args)
    checked = await visit.read(customers.password_hash, visitor.must_be_customer())
    if checked is not None:
        checked = await _checked(visit, visitor, args.get("password") or "", "password")
    await visit.write(customer_erasure.erase_own, visitor, checked)
    forget(visit, args["hostname"], visitor)
    return {"success": True}


async def client_addresses(
    payload: Payload, visit: RequestContext, args: Args
) -> list[order_addresses.Address]:
    """Return the addresses of the customer, or none."""
    user = payload["user"]
    return [] if user is None else await visit.read(order_addresses.listed, user.id)


async def _customer(visit: RequestContext, args: Args) -> Shopper:
    """Return the visitor, who is signed in. Raises unauthenticated."""
    visitor = await visit.visitor(args["hostname"])
    visitor.must_be_customer()
    return visitor


async def _checked(visit: RequestContext, visitor: Shopper, password: str, field: str) -> str:
    """Return the hash of the customer's own password, sent as `field`."""
    return await visit.storefront.passwords.check_own(
        visitor.store.id, visitor.must_be_customer(), password, visit.address, field
    )


def _must_do(password: str, field: str) -> None:
    wrong = customer_passwords.fault_of(password, field)
    if wrong is not None:
        raise wrong


QUERIES: Mapping[str, Resolver] = {}
MUTATIONS: Mapping[str, Resolver] = {
    "clientUpdate": update,
    "clientChangePassword": change_password,
    "clientRequestPasswordReset": request_reset,
    "clientResetPassword": reset_password,
    "clientVerifyEmail": verify_email,
    "clientAddressSave": save_address,
    "clientAddressDelete": delete_address,
    "clientExportData": export,
    "clientDeleteAccount": delete_account,
}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {"Client": {"addresses": client_addresses}}

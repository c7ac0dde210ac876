"""All texts of the console, by key. Another language is another mapping."""

from collections.abc import Mapping
from typing import Any

from gateway.console import text_charts, text_doctor, text_history, text_stores, text_webhooks

Catalogue = Mapping[str, str]

ENGLISH: Catalogue = {
    **text_webhooks.SENTENCES,
    **text_stores.SENTENCES,
    **text_charts.SENTENCES,
    **text_doctor.SENTENCES,
    **text_history.SENTENCES,
    "lang": "en",
    # Frame
    "app.name": "Carteiro",
    "app.tagline": "Every change in your CRM, delivered.",
    "app.skip": "Skip to content",
    "nav.label": "Main",
    "nav.webhooks": "Webhooks",
    "nav.stores": "Stores",
    "nav.orders": "Orders",
    "nav.reviews": "Reviews",
    "nav.keys": "API keys",
    "nav.account": "Account",
    "nav.sign_out": "Sign out",
    "crumbs.label": "Breadcrumb",
    # Sign-in
    "sign_in.title": "Sign in",
    "sign_in.email": "Email",
    "sign_in.password": "Password",
    "sign_in.submit": "Sign in",
    "sign_in.wrong": "Incorrect email or password.",
    "sign_in.slow": "Too many attempts. Wait {seconds} s and try again.",
    "sign_in.help": "No account yet? Ask the administrator of this server. For the first account,"
    " open the link that the server prints when it starts.",
    "first.title": "Create the first account",
    "first.lead": "This server has no accounts yet. Create the first one here.",
    "first.name": "Your name",
    "first.password_hint": "At least {shortest} characters. A few random words make a good"
    " password.",
    "first.submit": "Create account",
    "first.gone": "This link has expired or was already used",
    "first.gone_help": "If there is no account yet, restart the server to get a new link. If"
    " there is one, sign in.",
    # Shared
    "form.faults": "Please correct the fields marked below.",
    "form.cancel": "Cancel",
    "form.save": "Save changes",
    "form.optional": "optional",
    "copy": "Copy",
    "copied": "Copied",
    "time.never": "never",
    "time.now": "just now",
    "time.soon": "in a moment",
    "time.ago": "{span} ago",
    "time.in": "in {span}",
    "time.due": "due now",
    "count.more": "{count}+",
    "page.next": "Next page",
    "page.first": "First page",
    # API keys
    "keys.title": "API keys",
    "keys.lead": "A program uses an API key to act on your behalf. Send it in the X-API-Key"
    " header.",
    "keys.new": "New key",
    "keys.name": "Name",
    "keys.name_hint": "The program that uses the key, for example “ERP sync”.",
    "keys.scopes": "Scopes",
    "keys.scopes_short": "Scopes",
    "keys.read": "Read records",
    "keys.write": "Create, change and delete records",
    "keys.expires": "Expires",
    "keys.expires_never": "Never",
    "keys.expires_days": "In {days} days",
    "keys.submit": "Create key",
    "keys.key": "Key",
    "keys.created": "Created",
    "keys.last_used": "Last used",
    "keys.expired": "expired",
    "keys.revoke": "Revoke",
    "keys.revoke_of": "Revoke {name}",
    "keys.revoke_title": "Revoke this key?",
    "keys.revoke_lead": "Requests with this key fail from now on. This cannot be undone.",
    "keys.revoke_submit": "Revoke key",
    "keys.empty": "No API keys yet",
    "keys.empty_help": "Create one below and write your first record.",
    "keys.shown.title": "Copy your new key now",
    "keys.shown.help": "The key is shown only once. The server stores only a hash of it.",
    "keys.shown.label": "API key",
    "keys.shown.try": "Try it",
    # Account
    "account.title": "Account",
    "account.you": "Profile",
    "account.name": "Name",
    "account.email": "Email",
    "account.timezone": "Time zone",
    "account.timezone_hint": "Due dates, lists and reports use the days of this time zone.",
    "account.sessions": "Active sessions",
    "account.browser": "Browser",
    "account.address": "Address",
    "account.seen": "Last used",
    "account.started": "Signed in",
    "account.this": "this session",
    "account.end": "Sign out",
    "account.end_all": "Sign out everywhere",
    "account.end_all_help": "Ends all your sessions, including this one.",
    # Results
    "done.created": "Webhook created.",
    "done.saved": "Changes saved.",
    "done.paused": "Webhook paused. Events are parked until you activate it.",
    "done.activated": "Webhook activated.",
    "done.staged": "New secret created. It is not active yet.",
    "done.rotated": "New secret activated.",
    "done.unstaged": "Rotation cancelled. The current secret stays.",
    "done.deleted": "Webhook deleted.",
    "done.tested": "Test event sent. Its delivery appears below in a moment.",
    "done.replayed": "Replay created. It is sent now.",
    "done.replay_parked": "Replay created. It is parked until you activate the webhook.",
    "done.key_created": "API key created.",
    "done.account_saved": "Account saved.",
    "done.revoked": "API key revoked.",
    "done.signed_out": "You are signed out.",
    "done.signed_out_everywhere": "You are signed out everywhere.",
    "done.session_ended": "Session ended.",
    # Refusals
    "error.back": "Back to the webhooks",
    "error.forbidden": "Access denied",
    "error.not_found": "Page not found",
    "error.not_found_help": "The address is wrong, or the page no longer exists.",
    "error.method_not_allowed": "Method not allowed",
    "error.form_only": "This address accepts only form submissions. Go back and use the button on"
    " the page.",
    "error.conflict": "Conflict",
    "error.csrf": "This form has expired",
    "error.csrf_help": "You signed in or out after the form was loaded, or the form was open too"
    " long. Go back, reload the page and submit the form again.",
    "error.origin_help": "The form was submitted from another site.",
    "error.rate_limited": "Too many requests",
    "error.too_large": "The form is too large. The limits are 64 KiB and 1,500 fields.",
    "error.unavailable": "The database is unavailable",
    "error.unavailable_help": "Nothing was changed. Try again in a moment.",
    "error.internal_error": "Internal server error",
    "error.internal_help": "The server's log has the details under request {request_id}.",
    "error.other": "The request was refused",
}


def translate(catalogue: Catalogue, key: str, **values: Any) -> str:
    """Return the text of a key with its values filled in. Raise KeyError for an unknown key."""
    text = catalogue[key]
    return text.format(**values) if values else text

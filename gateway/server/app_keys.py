"""Typed keys of the parts from below, for application and requests.

A part of the server has its key beside its class.
"""

from aiohttp import web

from gateway.domain.accounts.credentials import Credentials
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignIn
from gateway.domain.cells.cells import Cells
from gateway.domain.storefront.stores.store_directory import Directory
from gateway.records.audit import Actor
from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.sending.egress_guard import Guard
from outbox.webhooks.secrets import KeyRing
from outbox.worker.examination import Doctor

CELLS = web.AppKey("CELLS", Cells)
CLOCK = web.AppKey("CLOCK", Clock)
IDS = web.AppKey("IDS", Ids)
DB = web.AppKey("DB", Database)
KEYRING = web.AppKey("KEYRING", KeyRing)
GUARD = web.AppKey("GUARD", Guard)
CREDENTIALS = web.AppKey("CREDENTIALS", Credentials)
DIRECTORY = web.AppKey("DIRECTORY", Directory)
DOCTOR = web.AppKey("DOCTOR", Doctor)
SIGN_IN = web.AppKey("SIGN_IN", SignIn)
PASSWORDS = web.AppKey("PASSWORDS", Passwords)

# Set on each request by the middleware and by authentication.
REQUEST_ID = web.RequestKey("REQUEST_ID", str)
CALLER = web.RequestKey("CALLER", Actor)

"""Typed keys of the parts that the aiohttp application and each request store."""

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.domain.accounts.credentials import Credentials
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignIn
from gateway.domain.storefront.stores.directory import Directory
from gateway.records.access import Actor
from gateway.server.budgets import Budget
from gateway.server.config import Config
from gateway.server.delivery import Delivery
from gateway.server.limits import RateLimits
from gateway.server.processes.member import Member
from gateway.server.proxies import Client
from gateway.server.storefront import Storefront
from gateway.server.telemetry.exposition import Exposition
from gateway.server.telemetry.health import Health
from gateway.server.telemetry.metrics import Metrics
from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.sending.guard import Guard
from outbox.webhooks.secrets import KeyRing
from outbox.worker.doctor import Doctor

FRAME: web.AppKey[Handler] = web.AppKey("FRAME")
CONFIG = web.AppKey("CONFIG", Config)
CLOCK = web.AppKey("CLOCK", Clock)
IDS = web.AppKey("IDS", Ids)
DB = web.AppKey("DB", Database)
KEYRING = web.AppKey("KEYRING", KeyRing)
GUARD = web.AppKey("GUARD", Guard)
ANSWERS = web.AppKey("ANSWERS", Budget)
BUILDING = web.AppKey("BUILDING", asyncio.Semaphore)
READING = web.AppKey("READING", asyncio.Lock)
MEMBER: web.AppKey[Member | None] = web.AppKey("MEMBER")
METRICS = web.AppKey("METRICS", Metrics)
EXPOSITION = web.AppKey("EXPOSITION", Exposition)
HEALTH = web.AppKey("HEALTH", Health)
LIMITS = web.AppKey("LIMITS", RateLimits)
CREDENTIALS = web.AppKey("CREDENTIALS", Credentials)
DIRECTORY = web.AppKey("DIRECTORY", Directory)
DELIVERY: web.AppKey[Delivery | None] = web.AppKey("DELIVERY")
DOCTOR = web.AppKey("DOCTOR", Doctor)
SIGN_IN = web.AppKey("SIGN_IN", SignIn)
PASSWORDS = web.AppKey("PASSWORDS", Passwords)
STOREFRONT = web.AppKey("STOREFRONT", Storefront)

# Set on each request by the middleware and by authentication.
REQUEST_ID = web.RequestKey("REQUEST_ID", str)
CLIENT = web.RequestKey("CLIENT", Client)
CALLER = web.RequestKey("CALLER", Actor)
RATE_LIMIT: web.RequestKey[tuple[str, str]] = web.RequestKey("RATE_LIMIT")

"""Run the delivery engine without a web server: `python -m outbox`.

It delivers the events that other programs enqueue.
"""

import argparse
import asyncio
import logging
import signal
import sys
from functools import partial
from pathlib import Path

import structlog

from outbox import database, private_files
from outbox.clock import SystemClock
from outbox.database.database_urls import without_password
from outbox.database.migrate import migrate
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.order import ordering
from outbox.queue.replays import jobs
from outbox.queue.upkeep.retention import Retention, expire_secrets
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.ed25519 import SEED_BYTES
from outbox.sending.egress_guard import Guard
from outbox.webhooks import key_mark, signing_keys
from outbox.webhooks.key_files import read_key_file
from outbox.worker import WorkerSettings
from outbox.worker.background_worker import Running
from outbox.worker.checkpointing import Checkpointing
from outbox.worker.duties import Duties
from outbox.worker.recovering import Recovering
from outbox.worker.scheduler import Scheduler

MIGRATIONS = Path(database.__file__).parent / "migrations"
GRACE_SECONDS = 10.0
RETENTION_SECONDS = 3600.0
SECRETS_SECONDS = 600.0
SECRETS_AT_ONCE = 100
JOBS_AT_ONCE = 100
LINES_SECONDS = 300.0


def main() -> int:
    """Return the exit status: 0 after SIGTERM or SIGINT, 1 after a one-line error at start-up."""
    parser = argparse.ArgumentParser(
        prog="python -m outbox",
        description=__doc__,
        epilog="Example: python -m outbox sqlite:///data/app.db data/app.key",
    )
    parser.add_argument("database", help="sqlite:///file.db or postgresql://user@host/name")
    parser.add_argument("keys", help="the key file that encrypts webhook secrets")
    parser.add_argument(
        "--slots",
        type=int,
        default=256,
        help="maximum number of concurrent requests (default: 256)",
    )
    parser.add_argument(
        "--service", default="Carteiro", help="name in User-Agent (default: Carteiro)"
    )
    parser.add_argument("--allow-http", action="store_true", help="also send to plain http URLs")
    parser.add_argument(
        "--allow", action="append", default=[], metavar="CIDR[:port]",
        help="allow a network that the egress rules block; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--keep-days", type=int, default=30, metavar="DAYS",
        help="delete finished deliveries and events after DAYS days (default: 30)",
    )  # fmt: skip
    args = parser.parse_args()
    if args.keep_days < 1:
        parser.error(f"--keep-days must be at least 1, not {args.keep_days}")
    # Plain tracebacks, because rich ones show the values of variables, which include secrets.
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        with private_files.private():
            asyncio.run(_drain(args))
    except (CannotStart, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


async def _drain(args: argparse.Namespace) -> None:
    clock, ids = SystemClock(), Ids()
    ring = read_key_file(args.keys, ids)
    rules = Rules(allow_http=args.allow_http, allow=tuple(map(parse_place, args.allow)))
    db = await database.open(args.database, clock=clock, ids=ids, serving=True)
    try:
        await migrate(db, [("outbox", MIGRATIONS)])
        url = without_password(args.database)
        await key_mark.must_belong(db, ring, f"the key file {args.keys}", url)
        await key_mark.tell_missing(db, ring)
        await db.write(signing_keys.ensure, ring, ids.token(SEED_BYTES))
        settings = WorkerSettings(slots=args.slots, service=args.service)
        running = Running(db, ring, Guard(rules, clock), settings)
        loop = asyncio.get_running_loop()
        ending = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, ending.set)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
            loop.add_signal_handler(signal.SIGHUP, ending.set)
        duties = upkeep(db, args.keep_days)
        checkpointing = Checkpointing(db, ring, days=args.keep_days)
        duties.once_every(RETENTION_SECONDS, "checkpoints", checkpointing.run_once)
        scheduler = Scheduler(clock)
        scheduler.every(duties.look_seconds, "duties", duties.look)
        duties.start()
        scheduler.start()
        running.start()
        print(f"draining {url}", flush=True)
        await ending.wait()
        scheduler.stop()
        await duties.stop()
        await running.drain(GRACE_SECONDS)
    finally:
        await db.close()


def upkeep(db: Database, keep_days: int) -> Duties:
    """Return the duties that delete the engine's expired data."""
    duties = Duties(db, db.leadership())
    retention = Retention(db, deliveries_days=keep_days, events_days=keep_days)
    duties.once_every(RETENTION_SECONDS, "retention", retention.run_once)

    async def secrets() -> None:
        while await db.write(expire_secrets, SECRETS_AT_ONCE) == SECRETS_AT_ONCE:
            pass
        await db.write(signing_keys.expire, SECRETS_AT_ONCE)

    async def ended_jobs() -> None:
        while await db.write(jobs.purge, JOBS_AT_ONCE) == JOBS_AT_ONCE:
            pass

    duties.once_every(SECRETS_SECONDS, "webhook-secrets", secrets)
    duties.once_every(RETENTION_SECONDS, "ended-jobs", ended_jobs)
    recovering = Recovering(db)
    duties.when(recovering.any_running, "jobs", recovering.run_once)
    duties.when(partial(ordering.any_turning, db), "turning", partial(ordering.finish_all, db))
    duties.once_every(LINES_SECONDS, "lines", partial(ordering.repair, db))
    return duties


if __name__ == "__main__":
    sys.exit(main())

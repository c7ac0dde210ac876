"""Serves docs/examples/django with a Django of one view."""

import os
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from django.conf import settings

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    CARTEIRO_SECRET=os.environ["WEBHOOK_SECRET"],
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache",
                        "OPTIONS": {"MAX_ENTRIES": 10_000}}},
    MIDDLEWARE=[
        "django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
    ],
    ROOT_URLCONF="urls",
)  # fmt: skip
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 - it needs the settings


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 128


class Quiet(WSGIRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


port = int(os.environ["PORT"])
make_server("127.0.0.1", port, get_wsgi_application(), Server, Quiet).serve_forever()

"""Receive webhooks in Django: verify the signature, take each event once.

Put this file and verify.py (docs/examples/receivers/python) into an app, the secret of the webhook
into settings.CARTEIRO_SECRET, and into urls.py: path("carteiro/", carteiro.webhook).
"""

import json
import time

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from verify import refusal

NAMES = ("webhook-id", "webhook-timestamp", "webhook-signature")


@csrf_exempt
@require_POST
def webhook(request: HttpRequest) -> HttpResponse:
    event_id, sent_at, signatures = (request.headers.get(name, "") for name in NAMES)
    # request.body has the bytes as they came; read it before request.POST.
    reason = refusal(
        settings.CARTEIRO_SECRET, event_id, sent_at, signatures, request.body, time.time()
    )
    if reason:
        return HttpResponse(reason, status=401)
    # Use a model with a unique column instead, in the transaction of your own work.
    if cache.add(f"carteiro:{event_id}", True, timeout=None):
        print(json.loads(request.body)["event"], event_id, flush=True)
    return HttpResponse(status=204)

"""The URLs of the Django that serves docs/examples/django."""

import carteiro
from django.urls import path

urlpatterns = [path("", carteiro.webhook)]

"""The product with one of its guards turned off, the one that `UNGUARDED` names.

Run in place of `python -m gateway`: the attack that the guard is for must then show.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from aiohttp import web

from gateway.__main__ import main
from gateway.console import forms
from gateway.console.forms import Form


async def any_form(request: web.Request) -> Form:
    """A form of any kind and size, in the character set that it names."""
    sent = await request.post()
    texts = {
        name: [value for value in sent.getall(name) if isinstance(value, str)] for name in sent
    }
    return Form(texts)


def take_any_form() -> None:
    """Forms are read by aiohttp, whatever they are."""
    forms.read = any_form


GUARDS: dict[str, Callable[[], None]] = {"forms": take_any_form}

if __name__ == "__main__":
    GUARDS[os.environ["UNGUARDED"]]()
    sys.exit(main())

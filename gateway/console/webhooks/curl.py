"""An attempt as a command of curl, to repeat it by hand against a receiver."""

import shlex

from gateway.console.frame.display import inert
from outbox.queue.log.delivery_types import Attempt

LONGEST = 32_768
"""Bytes of a body that a command may have in it; shells and systems refuse very long words."""


def command(attempt: Attempt, body: bytes | None) -> str | None:
    """Return the command, with the values of custom headers masked as in the log.

    None when the body is gone, or too long for a command line.
    """
    if body is None or len(body) > LONGEST:
        return None
    words = [f"curl -X POST {shlex.quote(inert(attempt.url))}"]
    words += [
        f"  -H {shlex.quote(f'{inert(name)}: {inert(value)}')}"
        for name, value in attempt.request_headers
    ]
    words.append(f"  --data-binary {shlex.quote(body.decode('utf-8', 'replace'))}")
    return " \\\n".join(words)

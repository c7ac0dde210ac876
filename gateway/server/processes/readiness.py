"""Judges whether a node of several processes is ready: one that serves is enough.

Of a process that does not answer, another takes the work over; a fault of the one that delivers is
a fault of the node.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from gateway.server.processes.channel import Gone
from gateway.server.processes.child import Child

OTHERS_SECONDS = 0.5
"""Once one process can serve, the answers of the others are awaited for so long."""

Answers = dict[Child, list[str] | None]
"""The faults of each process; None of one that did not answer."""


async def node_faults(children: Sequence[Child], count: int, *, one_delivers: bool) -> list[str]:
    """Return why a node of `count` processes is not ready; `children` are those that listen."""
    answers = await _answers(children)
    faults: list[str] = []
    if any(own == [] for own in answers.values()):
        if one_delivers:
            faults = [fault for child, own in answers.items() if child.works for fault in own or ()]
    else:
        if len(answers) < count:
            faults.append(f"{count - len(answers)} of {count} processes do not run")
        for child, own in answers.items():
            faults += [f"process {child.place + 1} does not respond"] if own is None else own
    return list(dict.fromkeys(faults))


async def _answers(children: Sequence[Child]) -> Answers:
    answers: Answers = dict.fromkeys(children)
    questions = {asyncio.create_task(_ask(child)): child for child in children}
    waits = set(questions)
    while waits:
        serves = any(own == [] for own in answers.values())
        if serves and all(questions[wait].silent for wait in waits):
            break
        seconds = OTHERS_SECONDS if serves else None
        done, waits = await asyncio.wait(
            waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not done:
            break
        for task in done:
            answers[questions[task]] = task.result()
    for wait in waits:
        wait.cancel()
    return answers


async def _ask(child: Child) -> list[str] | None:
    try:
        return msgspec.json.decode(await child.ask("readiness"), type=list[str])
    except (Gone, TimeoutError):
        return None

"""The line of forged tokens: each refused on both engines, and let in with a guard off."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.forgeries import GUARDS, run_forgeries, run_unguarded

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
ID_TOKENS, OF_A_KIND = 60, 4


async def forged_tokens(seed: int) -> Outcome:
    """Send forged id_tokens and session tokens of every kind; none signs anybody in."""
    outcome = Outcome()
    for engine in ENGINES:
        told = await run_forgeries(engine)
        outcome.add(engine, told)
        outcome.need(told["id_tokens"] >= ID_TOKENS, f"fewer than {ID_TOKENS} id_tokens")
        for kinds in (told["id_tokens_by_kind"], told["session_tokens_by_kind"]):
            few = [kind for kind, count in kinds.items() if count < OF_A_KIND]
            outcome.need(not few, f"fewer than {OF_A_KIND} of {few}")
    for guard in GUARDS:
        found = await run_unguarded("sqlite", guard)
        outcome.figures[f"control: {guard}"] = len(found)
        outcome.need(bool(found), f"{guard}, and every forged token is refused still")
    return outcome


LINES: dict[str, Line] = {"forged-tokens": forged_tokens}

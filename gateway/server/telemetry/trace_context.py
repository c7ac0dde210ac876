"""W3C trace context: continues a client's trace or starts one. (w3.org/TR/trace-context, 3.2)"""

import re
from typing import NamedTuple

from outbox.clock import Clock
from outbox.ids import Ids

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


class Trace(NamedTuple):
    """The span of one request in its trace."""

    trace_id: str
    span_id: str
    flags: str
    parent_id: str | None = None
    """The client's span; None for the root of a trace."""

    @property
    def traceparent(self) -> str:
        """The header `traceparent` for further requests."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


class Marks:
    """The generator of request ids and spans for one event loop.

    It draws random bytes in bulk: each draw is a system call, at which another thread may take
    over the interpreter.
    """

    def __init__(self, clock: Clock, ids: Ids, sample: float = 1.0) -> None:
        """`sample` is the share of new traces to record; a client decides about its own."""
        self._clock = clock
        self._ids = ids
        self._below = round(sample * 2**32)
        self._stock = ""
        self._used = 0

    def request_id(self) -> str:
        """Return a request id of 24 hex digits, like all ids."""
        return f"{self._clock.wall() // 1000:012x}{self._hex(12)}"

    def begin(self, header: str | None) -> Trace:
        """Return a span for a request: a child of a valid `header`, else a root."""
        if header is not None:
            match = _FORM.fullmatch(header)
            if match is not None:
                version, trace_id, parent, flags, rest = match.groups()
                known = version != "ff" and not (version == "00" and rest)
                if known and trace_id.strip("0") and parent.strip("0"):
                    # Only the flag "sampled" is supported.
                    sampled = "01" if int(flags, 16) & 1 else "00"
                    return Trace(trace_id, self._hex(16), sampled, parent)
        drawn = self._hex(48)
        # The digits that OpenTelemetry's sampler reads, so that equal shares choose equal traces.
        sampled = "01" if int(drawn[16:24], 16) < self._below else "00"
        return Trace(drawn[:32], drawn[32:], sampled)

    def span_id(self) -> str:
        """Return the id of a new span."""
        return self._hex(16)

    def _hex(self, digits: int) -> str:
        begin = self._used
        if begin + digits > len(self._stock):
            self._stock = self._ids.token(2048).hex()
            begin = 0
        self._used = begin + digits
        return self._stock[begin : self._used]

"""The error tree of sinkprobe. A message is one line: what was expected, what was found, where.

Only the command line turns these into exit codes. Inside a call nothing here is ever raised into
the session; there a failure becomes a fault in the trace.
"""

from __future__ import annotations

__all__ = ["BuildError", "ProbeError", "ScenarioError", "TraceError", "UsageError"]


class ProbeError(Exception):
    """Base of every error sinkprobe raises on purpose; ``exit_code`` is for the command line."""

    exit_code: int = 1


class TraceError(ProbeError):
    """A trace can't be read at all; what can be read in part is reported as incomplete instead."""


class ScenarioError(ProbeError):
    """A scripted call is described wrongly, or did not come to its end."""

    def __init__(self, reason: str, trace: object = None) -> None:
        """``trace``: what the call left up to there; a path, or ``None``."""
        kept = "" if trace is None else f"; the trace up to there is {trace}"
        super().__init__(f"{reason}{kept}")
        self.reason = reason
        """Without the trace: alike for calls that failed alike."""


class BuildError(ProbeError):
    """A build can't be found or installed; the message says which and why."""


class UsageError(ProbeError):
    """What was asked for can't be done as asked: a wrong combination of arguments or values."""

    exit_code: int = 2

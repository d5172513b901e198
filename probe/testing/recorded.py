"""A session recorded in a test, with its figures as objects to assert about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reports import Analysis, analyze, expect
from reports.assertions.terms import Words

if TYPE_CHECKING:
    from probe.attach import Recording

__all__ = ["RecordedCall"]


class RecordedCall(Words):
    """One recorded session. Its attributes are the words of the assertion language.

    Asking for the first of them, or for `analysis`, ends the recording: do it when what is to be
    tested is over.
    """

    def __init__(self, recording: Recording) -> None:
        super().__init__(lambda: self.analysis)
        self._recording = recording
        self._analysis: Analysis | None = None

    @property
    def path(self) -> Path:
        """The trace."""
        return self._recording.path

    @property
    def analysis(self) -> Analysis:
        """What `reports.analyze` says of the trace."""
        if self._analysis is None:
            self.close()
            self._analysis = analyze(self.path)
        return self._analysis

    def mark(self, name: str) -> None:
        """Put a bookmark into the trace."""
        self._recording.mark(name)

    def close(self) -> None:
        """End the recording; idempotent. A speech under way goes on."""
        self._recording.close()

    def expect(self, *assertions: str) -> None:
        """Hold assertions in the language's own text: ``call.expect("no push after verdict")``.

        Raises:
            AssertionError: one of them does not hold, or can't be judged.
        """
        expect(self.analysis, *assertions)

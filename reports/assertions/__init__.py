"""What must hold in a trace, said in a line: for tests and for scenario files.

    analysis = reports.analyze("call.jsonl")
    reports.expect(analysis, "verdict < clear < resume", "leaked.sent <= 20ms")
    reports.check(analysis, "no push after verdict").holds

Instants are put in order (``pause < verdict``) or subtracted (``last_sent - verdict <= 20ms``),
audio is held against a length or samples (``leaked.pushed == 0``), ``no EVENT after INSTANT`` looks
for what must not come, and ``no late-frames`` for what a rule finds. An assertion about barge-ins
must hold for every one of them; ``#2`` in front takes the second only, ``#committed`` or
``#overlap`` those of that outcome or kind.
"""

from __future__ import annotations

from typing import Final

from reports.assertions.evaluation import Check, Result, check
from reports.assertions.language import Assertion, AssertionSyntaxError, parse
from reports.assertions.moments import MarkedMoment
from reports.assertions.reading import Type
from reports.assertions.text import text
from reports.assertions.vocabulary import AUDIO_EVENTS, MARKS, NAMES
from reports.results import Analysis

__all__ = [
    "Assertion",
    "AssertionSyntaxError",
    "Check",
    "ExpectationError",
    "MarkedMoment",
    "Result",
    "check",
    "expect",
    "parse",
    "reference",
    "text",
]


class ExpectationError(AssertionError):
    """Something that must hold does not, or can't be judged. The message shows the moment."""

    def __init__(self, results: tuple[Result, ...], trace: str) -> None:
        super().__init__(f"not as expected in {trace}\n{text(results)}")
        self.results = results
        """Of the assertions that do not hold."""


def expect(analysis: Analysis, *assertions: str | Assertion) -> tuple[Result, ...]:
    """Hold assertions against an analysis, for tests.

    An assertion that can't be judged is not met: a test must not pass because nobody looked.

    Returns:
        A result for each assertion, in their order.

    Raises:
        ExpectationError: one of them does not hold; the message shows all that do not.
        AssertionSyntaxError: a text is no assertion.
    """
    results = tuple(check(analysis, assertion) for assertion in assertions)
    unmet = tuple(result for result in results if result.holds is not True)
    if unmet:
        raise ExpectationError(unmet, analysis.trace.path)
    return results


_GROUPS: Final[dict[Type, str]] = {
    "instant": "instants, compared with each other or subtracted",
    "length": "lengths of time, held against ms or s",
    "amount": "amounts of audio, held against ms, s or samples",
    "count": "numbers",
    "word": "words, with == or !=",
    "flag": "yes or no, alone or after not",
}


def reference() -> dict[str, dict[str, str]]:
    """Everything an assertion can name, and what it stands for; by group, in the order to list."""
    groups: dict[str, dict[str, str]] = {title: {} for title in _GROUPS.values()}
    for name in NAMES.values():
        groups[_GROUPS[name.type]][name.name] = name.meaning
    groups["what must not come"] = {
        **{
            f"no {event} after INSTANT": f"nothing of the speech was {boundary} after it"
            for event, boundary in AUDIO_EVENTS.items()
        },
        **{
            f"no {mark}": "no such mark of the sink; also after or before INSTANT" for mark in MARKS
        },
        "no INSTANT": "it never came",
        "no RULE": "the rule did not fire, at any severity (`sinkprobe rules`)",
    }
    return groups
